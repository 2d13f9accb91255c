// The detector's worker, but for frames whose first byte tells it to end or to hang.
import { parentPort } from 'node:worker_threads'
import { DetectorBackend } from '../../dist/detector/detector-backend.js'
import { serveWorker } from '../../dist/runtime/worker-runtime.js'

const deadly = 201
const hanging = 202

class FragileBackend extends DetectorBackend {
  async run(job) {
    if (job.frames.some((frame) => new Uint8Array(frame.rgbHwc)[0] === deadly)) process.exit(7)
    if (job.frames.some((frame) => new Uint8Array(frame.rgbHwc)[0] === hanging)) return new Promise(() => {})
    return super.run(job)
  }
}

serveWorker(parentPort, new FragileBackend())
