import type { LogMessage } from '../../lifecycle/thread-log.js'
import type { SequencePosition } from '../../runtime/infer.js'
import type { FailureReason, ServingStatus } from '../../tensors/serving-error.js'
import type { Tensor, TensorSpec } from '../../tensors/tensor.js'
import type { KserveSettings } from './kserve-settings.js'

/** What the thread of a remote model begins with. */
export type KserveStart = Readonly<{ settings: KserveSettings }>

/** A request as it goes to the thread. Buffers of large inputs move there. */
export type RemoteRequest = Readonly<{
  inputs: readonly Pick<Tensor, 'name' | 'datatype' | 'shape' | 'data'>[]
  /** Outputs that somebody wants. */
  outputs: readonly string[]
  sequence: SequencePosition | undefined
}>

/** What came back. Large buffers have moved. */
export type RemoteAnswer = Readonly<{
  outputs: readonly Tensor[]
  /** The whole message, where outputs are views of it. */
  message: Uint8Array | undefined
}>

export type RemoteDescription = Readonly<{
  inputs: readonly TensorSpec[]
  outputs: readonly TensorSpec[]
  maxBatchSize: number
}>

/** By kind: what the thread is asked, and what it answers. */
export type Calls = Readonly<{
  describe: [undefined, RemoteDescription]
  infer: [RemoteRequest, RemoteAnswer]
}>
export type CallKind = keyof Calls

export type ToKserveThread =
  | {
      [Kind in CallKind]: Readonly<{ type: 'call'; id: number; kind: Kind; given: Calls[Kind][0] }>
    }[CallKind]
  | Readonly<{ type: 'cancel'; id: number }>
  /** Calls that are under way go on; the thread ends after the last. */
  | Readonly<{ type: 'close' }>

export type FromKserveThread =
  /** The first that it says. @see ownThread */
  | Readonly<{ type: 'started'; thread: number }>
  | Readonly<{ type: 'answered'; id: number; result: Calls[CallKind][1] }>
  | Readonly<{ type: 'refused'; id: number; refusal: RemoteRefusal }>
  | LogMessage

/** A `ServingError` as it crosses the border of the thread. */
export type RemoteRefusal = Readonly<{ status: ServingStatus; message: string; reason: FailureReason }>
