// The worker of an ONNX model on GPUs that are not there.
import './simulated-gpus-worker.mjs'

await import('../../dist/backends/onnxruntime/onnx-worker.js')
