import { nowMs } from '../../lifecycle/clock.js'
import { gpuMemoryNow } from './nvidia-cards.js'

/** A card that takes longer to tell is not asked again: a look stands before and behind every step. */
const askAtMostMs = 1_000

/** What a step of a load gave, and the bytes of the card's memory that were taken meanwhile; undefined where nothing tells. */
type Taken<T> = Readonly<{ result: T; bytes: number | undefined }>

/** How much of a card's memory steps of a load take, by what the driver tells before and behind each. */
export class CardMemory {
  #isTold = true

  /** @param deviceId - as CUDA counts. @param used - bytes in use now; undefined where nothing tells. */
  constructor(
    readonly deviceId: number,
    readonly used: (deviceId: number) => Promise<number | undefined> = usedNow,
  ) {}

  /** @throws what the work throws */
  async takenBy<T>(work: () => Promise<T>): Promise<Taken<T>> {
    const before = await this.#look()
    const result = await work()
    const after = before === undefined ? undefined : await this.#look()
    return { result, bytes: after === undefined ? undefined : Math.max(0, after - before!) }
  }

  async #look(): Promise<number | undefined> {
    if (!this.#isTold) return undefined
    const beganMs = nowMs()
    const bytes = await this.used(this.deviceId)
    this.#isTold = bytes !== undefined && nowMs() - beganMs <= askAtMostMs
    return bytes
  }
}

/** Does the work, and looks at the card where that is wanted. @throws what the work throws */
export async function takenBy<T>(memory: CardMemory | undefined, work: () => Promise<T>): Promise<Taken<T>> {
  return memory === undefined ? { result: await work(), bytes: undefined } : memory.takenBy(work)
}

async function usedNow(deviceId: number): Promise<number | undefined> {
  return (await gpuMemoryNow(deviceId))?.usedBytes
}
