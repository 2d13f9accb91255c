import type ort from './onnxruntime.js'

/** Values of a run by their names. */
export type Tensors = Readonly<Record<string, ort.Tensor>>

/**
 * A model that is loaded: by the binding of ONNX Runtime for Node, which is the usual one, or by its C API, which takes options that the
 * binding has no word for. Runs come one at a time.
 */
export interface OrtSession extends Pick<ort.InferenceSession, 'inputMetadata' | 'outputMetadata'> {
  /**
   * @param fetches - names of outputs, or tensors that they are written into where the session can.
   * @throws Error with what native code says
   */
  run(feeds: Tensors, fetches: readonly string[] | Tensors): Promise<Tensors>
  /** Memory for inputs and outputs that the device reads by itself: gone with the session. Undefined where there is none. */
  memory?(bytes: number): ArrayBuffer | undefined
  /** Idempotent. */
  release(): Promise<void>
}
