// The worker of an ONNX model on the provider that charges for a change of shape.
import './one-shape-provider.mjs'
import '../../dist/backends/onnxruntime/onnx-worker.js'
