/** A message as it went out: position in the stream, camera, and the unfiltered text. */
export type KeptMessage = Readonly<{ position: number; cameraId: string; whole: Buffer }>

/** The newest messages of the stream, for clients that come back. Bounded by count and bytes; the oldest go. Positions have no holes. */
export class ResumeRing {
  readonly #kept: (KeptMessage | undefined)[]
  #oldest = 1
  #newest = 0
  #bytes = 0

  constructor(
    readonly maxMessages: number,
    readonly maxBytes: number,
  ) {
    this.#kept = new Array<KeptMessage | undefined>(maxMessages)
  }

  /** Position of the newest message, 0 before the first. */
  get newest(): number {
    return this.#newest
  }

  /** Position of the oldest message still kept; `newest + 1` while none is. */
  get oldest(): number {
    return this.#oldest
  }

  get bytes(): number {
    return this.#bytes
  }

  push(cameraId: string, render: (position: number) => Buffer): KeptMessage {
    const position = this.#newest + 1
    const kept = { position, cameraId, whole: render(position) }
    if (position - this.#oldest === this.maxMessages) this.#dropOldest()
    this.#kept[position % this.maxMessages] = kept
    this.#newest = position
    this.#bytes += kept.whole.length
    while (this.#bytes > this.maxBytes && this.#oldest < this.#newest) this.#dropOldest()
    return kept
  }

  at(position: number): KeptMessage | undefined {
    if (position < this.#oldest || position > this.#newest) return undefined
    return this.#kept[position % this.maxMessages]
  }

  #dropOldest(): void {
    const slot = this.#oldest % this.maxMessages
    this.#bytes -= this.#kept[slot]?.whole.length ?? 0
    this.#kept[slot] = undefined
    this.#oldest += 1
  }
}
