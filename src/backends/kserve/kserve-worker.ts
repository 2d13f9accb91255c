import '../../lifecycle/catch-warnings.js'
import { isMarkedAsUntransferable, parentPort, workerData } from 'node:worker_threads'
import { InternalError } from '../../errors.js'
import { ownThread } from '../../lifecycle/memory-use.js'
import { threadLog } from '../../lifecycle/thread-log.js'
import { leastMovedBytes } from '../../tensors/tensor-buffers.js'
import { ServingError } from '../../tensors/serving-error.js'
import { readAnswer } from './infer-answer.js'
import { KserveCluster } from './kserve-cluster.js'
import { inferMessage, modelConfig, modelMetadata } from './kserve-messages.js'
import type {
  FromKserveThread,
  KserveStart,
  RemoteRefusal,
  RemoteAnswer,
  RemoteDescription,
  RemoteRequest,
  ToKserveThread,
} from './kserve-protocol.js'

/** Entry of the thread that calls the server of a remote model: all its requests at once. */
if (parentPort === null) throw new InternalError('kserve-worker runs in a worker thread only')
const port = parentPort
const { settings } = workerData as KserveStart
const cluster = new KserveCluster(settings, threadLog(say))
const calls = new Map<number, AbortController>()
let isClosing = false

port.on('message', (message: ToKserveThread) => {
  switch (message.type) {
    case 'call':
      void answer(message)
      return
    case 'cancel':
      calls.get(message.id)?.abort()
      return
    case 'close':
      cluster.close()
      if (calls.size === 0) port.close()
      else isClosing = true
      return
    default:
      message satisfies never
  }
})
say({ type: 'started', thread: ownThread() })

function say(message: FromKserveThread, transfer: readonly ArrayBuffer[] = []): void {
  port.postMessage(message, transfer)
}

async function answer(call: Extract<ToKserveThread, { type: 'call' }>): Promise<void> {
  const { id } = call
  const cancelled = new AbortController()
  calls.set(id, cancelled)
  try {
    const result = call.kind === 'describe' ? await describe() : await infer(call.given, cancelled.signal)
    say({ type: 'answered', id, result }, 'message' in result ? moved(result) : [])
  } catch (error) {
    say({ type: 'refused', id, refusal: refusalOf(error) })
  } finally {
    calls.delete(id)
    if (isClosing && calls.size === 0) port.close()
  }
}

async function describe(): Promise<RemoteDescription> {
  const { model: name, version } = settings
  const options = { retry: true, signal: undefined }
  const tensors = await cluster.call(modelMetadata, { name, version }, options)
  return { ...tensors, maxBatchSize: await cluster.call(modelConfig, { name, version }, options) }
}

async function infer(request: RemoteRequest, signal: AbortSignal): Promise<RemoteAnswer> {
  const method = { name: 'ModelInfer', read: (bytes: Buffer) => read(bytes, request.outputs) } as const
  // A sequence has a state on the server: a request that may have reached it is not sent again.
  const retry = request.sequence === undefined
  return cluster.call(method, inferMessage(settings, request), { retry, signal })
}

function read(bytes: Buffer, wanted: readonly string[]): RemoteAnswer {
  const message = isOwn(bytes) ? bytes : Buffer.from(new Uint8Array(bytes).buffer)
  const outputs = readAnswer(message, wanted, settings)
  const isSeen = outputs.some(({ data }) => data.buffer === message.buffer)
  return { outputs, message: isSeen ? message : undefined }
}

/** Whether the message may leave the thread as it is: the library gathers large ones in a buffer of their own. */
function isOwn({ buffer, byteLength }: Buffer): boolean {
  return byteLength >= leastMovedBytes && !isMarkedAsUntransferable(buffer)
}

/** Buffers that move; small ones are copied. */
function moved({ outputs }: RemoteAnswer): readonly ArrayBuffer[] {
  const buffers = new Set(outputs.map(({ data }) => data.buffer as ArrayBuffer))
  return [...buffers].filter(({ byteLength }) => byteLength >= leastMovedBytes)
}

function refusalOf(error: unknown): RemoteRefusal {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof ServingError)) return { status: 'INTERNAL', message, reason: 'BACKEND' }
  return { status: error.status, message, reason: error.reason }
}
