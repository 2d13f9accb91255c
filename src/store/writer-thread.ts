import '../lifecycle/catch-warnings.js'
import { parentPort, workerData } from 'node:worker_threads'
import { InternalError } from '../errors.js'
import type { FromWriter, ToWriter, WriterStart } from './store-messages.js'
import { StoreWriter } from './store-writer.js'

/** Entry of the thread that writes records, so that no disk holds up the loop that publishes them. */
if (parentPort === null) throw new InternalError('writer-thread runs in a worker thread only')
const port = parentPort
const tendEveryMs = 1_000

const writer = new StoreWriter(workerData as WriterStart, (message: FromWriter) => port.postMessage(message))

// What waits to be committed goes first, each time.
function tend(): void {
  if (writer.tend()) setImmediate(tend)
}

const timer = setInterval(() => {
  writer.figures()
  tend()
}, tendEveryMs)

port.on('message', (message: ToWriter) => {
  if (message.type !== 'close') return writer.receive(message)
  clearInterval(timer)
  writer.close()
  port.close()
})
