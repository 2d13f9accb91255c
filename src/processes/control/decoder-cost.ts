/** Measured on an H100: most of it is the context of CUDA that each process has (docs/decoding.md). */
export const firstDecoderBytes = 560 * 1024 ** 2

/** What is less or more was something else: models that were loaded or unloaded meanwhile. */
const plausible = { leastBytes: 64 * 1024 ** 2, mostBytes: 2 * 1024 ** 3 }
/** The middle one of so many counts. */
const keptSamples = 5
/** What is told anew. */
const newsShare = 0.1

export type DecoderCostDeps = Readonly<{
  /** From the last of several starts until their memory is there and has been read. */
  settledMs: number
  isLive: (cameraId: string) => boolean
  /** Memory of the card in use by whatever program, as it was read last; `undefined` while nothing tells it. */
  usedBytes: () => number | undefined
  /** It is known, or differs from what it was. */
  measured: (eachBytes: number) => void
}>

/** What a decoder takes of a card, by what the card said before some began and after. */
export class DecoderCost {
  #samples: number[] = []
  #eachBytes = firstDecoderBytes
  /** Those that began since. */
  #window: { usedBytes: number; cameras: Set<string> } | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(readonly deps: DecoderCostDeps) {}

  get eachBytes(): number {
    return this.#eachBytes
  }

  /** A decoder is about to begin. @param usedBytes - memory in use, where that of all the others is in it. */
  began(cameraId: string, usedBytes: number | undefined): void {
    if (usedBytes !== undefined) this.#window = { usedBytes, cameras: new Set() }
    this.#window?.cameras.add(cameraId)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#look(), this.deps.settledMs).unref()
  }

  /** Memory has changed for another reason. */
  forget(): void {
    this.#window = undefined
    clearTimeout(this.#timer)
  }

  #look(): void {
    const used = this.deps.usedBytes()
    const window = this.#window
    this.#window = undefined
    if (window === undefined || used === undefined) return
    const cameras = [...window.cameras]
    if (!cameras.every((cameraId) => this.deps.isLive(cameraId))) return
    const bytes = (used - window.usedBytes) / cameras.length
    if (bytes < plausible.leastBytes || bytes > plausible.mostBytes) return
    this.#samples = [...this.#samples, bytes].slice(-keptSamples)
    const sorted = this.#samples.toSorted((a, b) => a - b)
    const before = this.#eachBytes
    this.#eachBytes = sorted[Math.floor(sorted.length / 2)] ?? before
    if (this.#samples.length === 1 || Math.abs(this.#eachBytes / before - 1) > newsShare)
      this.deps.measured(this.#eachBytes)
  }
}
