import { KeptText } from '../../messages/kept-text.js'

/** A message that went out: position in the stream, camera, and its JSON. */
export type KeptMessage = Readonly<{ position: number; cameraId: string; json: KeptText }>

/**
 * The newest messages of the stream, for clients that come back. Bounded by count and bytes; the oldest go, and the newest take over
 * their memory. Positions have no holes.
 */
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

  /** Memory of the texts. */
  get bytes(): number {
    return this.#bytes
  }

  /** @returns the position of the message. */
  push(cameraId: string, json: Uint8Array): number {
    const position = this.#newest + 1
    if (position - this.#oldest === this.maxMessages) this.#oldest += 1
    const slot = position % this.maxMessages
    const kept = this.#kept[slot]?.json ?? new KeptText()
    this.#bytes -= kept.capacity
    kept.write(json)
    this.#bytes += kept.capacity
    this.#kept[slot] = { position, cameraId, json: kept }
    this.#newest = position
    while (this.#bytes > this.maxBytes && this.#oldest < this.#newest) this.#dropOldest()
    return position
  }

  /** So many messages never came. Those before them go: positions have no holes. */
  skip(count: number): void {
    while (this.#oldest <= this.#newest) this.#dropOldest()
    this.#newest += count
    this.#oldest = this.#newest + 1
  }

  /** @returns the message, whose text stands until the next push. */
  at(position: number): KeptMessage | undefined {
    if (position < this.#oldest || position > this.#newest) return undefined
    return this.#kept[position % this.maxMessages]
  }

  #dropOldest(): void {
    const slot = this.#oldest % this.maxMessages
    this.#bytes -= this.#kept[slot]?.json.capacity ?? 0
    this.#kept[slot] = undefined
    this.#oldest += 1
  }
}
