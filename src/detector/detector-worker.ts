import '../lifecycle/catch-warnings.js'
import { parentPort } from 'node:worker_threads'
import { InternalError } from '../errors.js'
import { serveWorker } from '../runtime/worker-runtime.js'
import { DetectorBackend } from './detector-backend.js'

/** Entry of a detector's worker thread. */
if (parentPort === null) throw new InternalError('detector-worker runs in a worker thread only')
serveWorker(parentPort, new DetectorBackend())
