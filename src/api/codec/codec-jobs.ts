import { isMarkedAsUntransferable } from 'node:worker_threads'
import type { SentRequest } from '../../runtime/infer.js'
import type { LoadRequest } from '../../serving/model-server.js'
import { ServingError, type FailureReason, type ServingStatus } from '../../tensors/serving-error.js'
import { giveBack } from '../../tensors/tensor-buffers.js'
import { decodeWhole, sentRequestOf } from '../grpc/infer-request-message.js'
import { ProtoError } from '../grpc/proto-reader.js'
import { parseInferBody, type ParsedInfer } from '../kserve/infer-body.js'
import { type JsonOutput, jsonOfTensor } from '../kserve/json-output.js'
import { loadRequest } from '../kserve/repository-body.js'

/** By kind: what a thread is given, and what it makes of it. Buffers move there and back. */
export type Jobs = Readonly<{
  /** The body of an inference by HTTP. */
  inferBody: [
    Readonly<{ body: Uint8Array; headerBytes: number; model: string; version: string }>,
    ParsedInfer,
  ]
  /** The body of a load request by HTTP. */
  loadBody: [Readonly<{ body: Uint8Array }>, LoadRequest]
  /** A `ModelInferRequest`. */
  inferMessage: [Readonly<{ bytes: Buffer }>, ReadMessage]
  /** The `data` of an output in JSON. */
  tensorJson: [JsonOutput, Uint8Array]
}>

export type JobKind = keyof Jobs
export type CodecJob<Kind extends JobKind = JobKind> = {
  [K in Kind]: Readonly<{ kind: K; given: Jobs[K][0] }>
}[Kind]

/** Whom it is for is told with what is wrong: it is answered before that when there is no such model. */
export type ReadMessage = Readonly<{
  model: string
  version: string
  id: string
  read: SentRequest | JobRefusal
}>

/** An error as it crosses the border of a thread. */
export type JobRefusal = Readonly<{
  error: 'serving' | 'proto' | 'other'
  message: string
  status?: ServingStatus
  reason?: FailureReason
}>

/** The first that a thread says: its number, by which the system counts what it takes of memory. */
export type CodecStarted = Readonly<{ thread: number }>

export type JobAnswer = Readonly<{ result: unknown } | { refusal: JobRefusal }>

type Done = Readonly<{ answer: JobAnswer; transfer: readonly ArrayBuffer[] }>

/** The buffer that moved to the thread with the job moves on in the answer, or is given back. */
export function doJob(job: CodecJob): Done {
  const done = answered(job)
  const { buffer } = bytesOf(job)
  if (!done.transfer.includes(buffer)) giveBack([buffer])
  return done
}

function bytesOf({ given }: CodecJob): Uint8Array<ArrayBuffer> {
  const bytes = 'body' in given ? given.body : 'bytes' in given ? given.bytes : given.data
  return bytes as Uint8Array<ArrayBuffer>
}

function answered(job: CodecJob): Done {
  const moved = new Moved()
  try {
    return { answer: { result: resultOf(job, moved) }, transfer: moved.buffers }
  } catch (error) {
    return { answer: { refusal: refusalOf(error) }, transfer: [] }
  }
}

function resultOf(job: CodecJob, moved: Moved): unknown {
  switch (job.kind) {
    case 'inferBody': {
      const { body, headerBytes, model, version } = job.given
      const { request, forms } = parseInferBody(asBuffer(body), headerBytes, model, version)
      return { request: moved.request(request), forms } satisfies ParsedInfer
    }
    case 'loadBody': {
      const { config, files } = loadRequest(asBuffer(job.given.body))
      return { config, files: new Map([...files].map(([name, bytes]) => [name, moved.bytes(bytes)])) }
    }
    case 'inferMessage':
      return readMessage(asBuffer(job.given.bytes), moved)
    case 'tensorJson':
      return moved.bytes(jsonOfTensor(job.given))
    default:
      return job satisfies never
  }
}

function readMessage(bytes: Buffer, moved: Moved): ReadMessage {
  const message = decodeWhole(bytes)
  const { model, version, id } = message
  try {
    return { model, version, id, read: moved.request(sentRequestOf(message)) }
  } catch (error) {
    return { model, version, id, read: refusalOf(error) }
  }
}

/** Buffers that leave the thread with a result. */
class Moved {
  readonly #buffers = new Set<ArrayBuffer>()

  get buffers(): readonly ArrayBuffer[] {
    return [...this.#buffers]
  }

  request(request: SentRequest): SentRequest {
    return {
      ...request,
      inputs: request.inputs.map((tensor) => ({ ...tensor, data: this.bytes(tensor.data) })),
    }
  }

  /** What lies in Node's pool is copied out of it. */
  bytes(bytes: Uint8Array): Uint8Array {
    const own = isMarkedAsUntransferable(bytes.buffer) ? new Uint8Array(bytes) : bytes
    this.#buffers.add(own.buffer as ArrayBuffer)
    return own
  }
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

function refusalOf(error: unknown): JobRefusal {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof ServingError)
    return { error: 'serving', message, status: error.status, reason: error.reason }
  return { error: error instanceof ProtoError ? 'proto' : 'other', message }
}

export function wasRefused(read: SentRequest | JobRefusal): read is JobRefusal {
  return 'error' in read
}

/** The error as it was thrown in the thread. */
export function errorOf({ error, message, status = 'INTERNAL', reason }: JobRefusal): Error {
  if (error === 'serving') return new ServingError(status, message, reason)
  return error === 'proto' ? new ProtoError(message) : new Error(message)
}
