import '../../lifecycle/catch-warnings.js'
import { parentPort } from 'node:worker_threads'
import { InternalError } from '../../errors.js'
import { serveWorker } from '../../runtime/worker-runtime.js'
import { OnnxSession } from './onnx-session.js'

/** Entry of the thread of an ONNX model. */
if (parentPort === null) throw new InternalError('onnx-worker runs in a worker thread only')
serveWorker(parentPort, new OnnxSession())
