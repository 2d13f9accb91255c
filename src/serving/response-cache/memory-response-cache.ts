import { LRUCache } from 'lru-cache'
import { copyInTurns } from '../../tensors/tensor-buffers.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { ResponseCache } from './response-cache.js'

/** What an answer takes besides the bytes of its tensors. */
const overheadBytes = 512

/** The answers used last, up to a number of bytes. */
export class MemoryResponseCache implements ResponseCache {
  readonly #answers: LRUCache<string, readonly Tensor[]>

  constructor(readonly maxBytes: number) {
    this.#answers = new LRUCache({ maxSize: maxBytes, sizeCalculation: bytesOf })
  }

  get(key: string): Promise<readonly Tensor[] | undefined> {
    return Promise.resolve(this.#answers.get(key))
  }

  async put(key: string, outputs: readonly Tensor[]): Promise<void> {
    // Views may hold on to a buffer many times their size.
    if (bytesOf(outputs) <= this.maxBytes) this.#answers.set(key, await Promise.all(outputs.map(copied)))
  }

  close(): Promise<void> {
    this.#answers.clear()
    return Promise.resolve()
  }
}

function bytesOf(outputs: readonly Tensor[]): number {
  return outputs.reduce((sum, { data }) => sum + data.byteLength, overheadBytes)
}

async function copied({ name, datatype, shape, data }: Tensor): Promise<Tensor> {
  return { name, datatype, shape: [...shape], data: await copyInTurns(data) }
}
