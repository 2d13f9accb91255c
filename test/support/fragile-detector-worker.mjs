// The detector's worker, but for frames whose first byte tells it to end.
import { parentPort } from 'node:worker_threads'
import { DetectorBackend } from '../../dist/ensemble/detector-backend.js'
import { serveWorker } from '../../dist/inference/worker-runtime.js'

const deadly = 201

class FragileBackend extends DetectorBackend {
  async run(job) {
    if (job.frames.some((frame) => new Uint8Array(frame.rgbHwc)[0] === deadly)) process.exit(7)
    return super.run(job)
  }
}

serveWorker(parentPort, new FragileBackend())
