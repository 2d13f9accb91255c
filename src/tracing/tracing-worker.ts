import '../lifecycle/catch-warnings.js'
import { parentPort, workerData } from 'node:worker_threads'
import { InternalError, toErrorRecord } from '../errors.js'
import { threadLog } from '../lifecycle/thread-log.js'
import { OtelSpans } from './otel-spans.js'
import type { FromTracingThread, ToTracingThread, TracingStart } from './tracing-messages.js'

/** Entry of the thread that makes spans of what has ended, and sends them. */
if (parentPort === null) throw new InternalError('tracing-worker runs in a worker thread only')
const port = parentPort
const { config, who } = workerData as TracingStart

try {
  const spans = await OtelSpans.open(config, who, threadLog(say))
  port.on('message', (message: ToTracingThread) => void receive(spans, message))
  say({ type: 'started' })
} catch (error) {
  say({ type: 'failed', error: toErrorRecord(error) })
}

async function receive(spans: OtelSpans, message: ToTracingThread): Promise<void> {
  switch (message.type) {
    case 'spans':
      for (const span of message.spans) spans.take(span)
      say({ type: 'taken' })
      return
    case 'flush':
      await spans.flush()
      say({ type: 'flushed' })
      return
    case 'close':
      await spans.close()
      say({ type: 'flushed' })
      port.close()
      return
    default:
      message satisfies never
  }
}

function say(message: FromTracingThread): void {
  port.postMessage(message)
}
