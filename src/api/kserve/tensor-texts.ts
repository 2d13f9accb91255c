import { copyInTurns } from '../../tensors/tensor-buffers.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { CodecPool } from '../codec/codec-pool.js'
import { mostHere } from '../codec/here-or-elsewhere.js'
import { jsonOfTensor } from './json-output.js'

/** The `data` of the outputs of one answer as JSON: made here while it is little, else by the pool. */
export class TensorTexts {
  #bytesLeft: number = mostHere.bytes

  constructor(
    readonly pool: CodecPool,
    readonly signal: AbortSignal,
  ) {}

  /** @param outputs - the whole answer. @throws ServingError, and what the pool throws */
  of(tensor: Tensor, outputs: readonly Tensor[]): Uint8Array | Promise<Uint8Array> {
    this.#bytesLeft -= tensor.data.byteLength
    return this.#bytesLeft >= 0 ? jsonOfTensor(tensor) : this.#elsewhere(tensor, outputs)
  }

  async #elsewhere(
    { name, datatype, data, movable }: Tensor,
    outputs: readonly Tensor[],
  ): Promise<Uint8Array> {
    const alone = outputs.filter((other) => other.data.buffer === data.buffer).length === 1
    const own = movable === true && alone ? data : await copyInTurns(data)
    return this.pool.run('tensorJson', own, (moved) => ({ name, datatype, data: moved }), this.signal)
  }
}
