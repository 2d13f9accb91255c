import '../../lifecycle/catch-warnings.js'
import { parentPort } from 'node:worker_threads'
import { InternalError } from '../../errors.js'
import { ownThread } from '../../lifecycle/memory-use.js'
import { doJob, type CodecStarted, type CodecJob } from './codec-jobs.js'

/** Reads large requests and writes large answers, one at a time, for a `CodecPool`. */
if (parentPort === null) throw new InternalError('codec-worker runs in a worker thread only')
const port = parentPort
port.on('message', (job: CodecJob) => {
  const { answer, transfer } = doJob(job)
  port.postMessage(answer, transfer)
})
port.postMessage({ thread: ownThread() } satisfies CodecStarted)
