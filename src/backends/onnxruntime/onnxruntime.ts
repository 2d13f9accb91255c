// The only file that imports the package: its library is loaded here, after it was told to keep still.
import '../../lifecycle/no-telemetry.js'

export { default } from 'onnxruntime-node'
