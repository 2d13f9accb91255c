// The worker of an ONNX model, but for inputs whose first byte tells it to end.
import { parentPort } from 'node:worker_threads'
import { OnnxSession } from '../../dist/backends/onnxruntime/onnx-session.js'
import { serveWorker } from '../../dist/runtime/worker-runtime.js'

const deadly = 201

class FragileSession extends OnnxSession {
  async run(job) {
    if (job.inputs.some((input) => input.parts.some((part) => part[0] === deadly))) process.exit(7)
    return super.run(job)
  }
}

serveWorker(parentPort, new FragileSession())
