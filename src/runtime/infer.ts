import type { ExecutionTimes } from './statistics.js'
import type { Tensor } from '../tensors/tensor.js'
import type { TraceHeaders } from '../messages/traceparent.js'
import type { RequestTrace } from './tracing/request-trace.js'

export type ParameterValue = string | number | boolean | bigint

/** Bytes of a client's shared memory; they may not be there. */
export type SharedPlace = Readonly<{
  /** As the client has registered it. */
  region: string
  /** Within the region. */
  offset: number
  bytes: number
}>

export type RequestedOutput = Readonly<{
  name: string
  /** Best classes to give instead of the values; 0 gives the values. */
  classification: number
  /** Where to put it instead of sending it. */
  place?: SharedPlace
}>

/** Place of a request in a sequence. Ids are compared as text; numbers are written in decimal. */
export type SequencePosition = Readonly<{ id: string; start: boolean; end: boolean }>

/** When the reading of a request began and ended, on the monotonic clock. */
export type Arrival = Readonly<{
  protocol: 'HTTP' | 'GRPC'
  startedMs: number
  endedMs: number
  /** One of many over a stream of gRPC. */
  isStreamed?: boolean
  /** Whose trace it belongs to, as it says. */
  traceHeaders?: TraceHeaders
}>

/** What a protocol knows of a request before it reads it. */
export type Caller = Readonly<{
  /** Aborted when the client is gone or cancels. */
  signal: AbortSignal
  /** For traces. */
  arrival: Arrival
}>

/** An inference request of an API client, whatever it came by. */
export type InferRequest = Readonly<{
  model: string
  /** Empty: the highest version that is ready. */
  version: string
  /** Given back in the answer; may be empty. */
  id: string
  inputs: readonly Tensor[]
  /** By number, inputs whose data lie in shared memory and are not in the tensor yet; absent: none. */
  sharedInputs?: ReadonlyMap<number, SharedPlace>
  /** Empty: all outputs. */
  outputs: readonly RequestedOutput[]
  /** 1 is the highest; 0 takes the default of the model. */
  priority: number
  /** 0: none. */
  timeoutUs: number
  sequence: SequencePosition | undefined
  /** Parameters the server does not reserve. */
  parameters: Readonly<Record<string, ParameterValue>>
  /** Aborted when the client is gone or cancels. */
  signal: AbortSignal | undefined
  /** Outputs that the model does not give are left out of the answer, and are no error: of steps of ensembles. */
  mayLack?: true
  /** Told the times of the run that answered the request, before the answer; never for one that a response cache answers. */
  onRun?: (times: ExecutionTimes) => void
  /** How it came; for traces. */
  arrival?: Arrival
  /** Where what happens to it is written down; only a few requests have one. */
  trace?: RequestTrace
}>

/** A request as it was sent, before it is known who waits for it. */
export type SentRequest = Omit<InferRequest, keyof Caller | 'mayLack' | 'onRun' | 'trace'>

export type InferResponse = Readonly<{
  /** Of a request that is traced: called when the answer has gone out, or cannot. @param startedMs - when its sending began */
  onSent?: (startedMs: number) => void
  model: string
  version: string
  id: string
  outputs: readonly Tensor[]
  /** Outputs that were put into shared memory, and have no data here; absent: none. */
  inSharedMemory?: ReadonlySet<string>
  parameters: Readonly<Record<string, ParameterValue>>
}>
