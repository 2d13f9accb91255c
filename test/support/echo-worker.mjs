// A worker whose backend does as it is told, on the real worker runtime.
import { parentPort } from 'node:worker_threads'
import { serveWorker } from '../../dist/runtime/worker-runtime.js'

let loaded = 0
let runs = 0

serveWorker(parentPort, {
  async load(options) {
    if (options.failLoad) throw new Error('load was told to fail')
    loaded += 1
    return { loaded, first: options.first ?? null }
  },
  async run(job) {
    runs += 1
    switch (job.do) {
      case 'exit':
        return process.exit(3)
      case 'throw':
        throw new Error('run was told to fail')
      case 'crash':
        // Outside of any promise: ends the thread with an error.
        setImmediate(() => {
          throw new Error('worker crashed')
        })
        return new Promise(() => {})
      case 'hang':
        return new Promise(() => {})
      default:
        return {
          result: { runs, bytes: job.buffer?.byteLength ?? 0, buffer: job.buffer },
          transfer: job.buffer ? [job.buffer] : [],
        }
    }
  },
  async release() {},
})
