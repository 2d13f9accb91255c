import type { Tensor } from '../../tensors/tensor.js'

/** Answers kept by what was asked. A cache that fails is a cache that has nothing: neither call ever rejects. */
export interface ResponseCache {
  get(key: string): Promise<readonly Tensor[] | undefined>
  /** Takes the tensors as they are; they are never written to. */
  put(key: string, outputs: readonly Tensor[]): Promise<void>
  /** Idempotent, never rejects. */
  close(): Promise<void>
}
