import { KeptText } from '../../messages/kept-text.js'

/** A message that went out: position in the stream, camera, and its JSON. */
export type KeptMessage = Readonly<{ position: number; cameraId: string; json: KeptText }>

/**
 * The newest messages of the stream, for clients that come back. Bounded by count and bytes; the oldest go, and the newest take over
 * their memory. Positions grow; not each has a message.
 */
export class ResumeRing {
  readonly #kept: (KeptMessage | undefined)[]
  /** Messages so far, and how many of them are not kept any more. */
  #pushed = 0
  #gone = 0
  #oldest = 1
  #newest = 0
  #bytes = 0

  constructor(
    readonly maxMessages: number,
    readonly maxBytes: number,
  ) {
    this.#kept = new Array<KeptMessage | undefined>(maxMessages)
  }

  /** The first message lies behind this position. Without effect once there has been one. */
  begin(newest: number): void {
    if (this.#pushed > 0) return
    this.#newest = newest
    this.#oldest = newest + 1
  }

  /** Nothing lies between the newest message and this position, and the next one comes behind it. */
  advance(position: number): void {
    this.#newest = Math.max(this.#newest, position)
    if (this.#pushed === this.#gone) this.#oldest = this.#newest + 1
  }

  /** Position of the newest message, or behind it. */
  get newest(): number {
    return this.#newest
  }

  /** Every message of this position and behind it is kept; `newest + 1` while none is. */
  get oldest(): number {
    return this.#oldest
  }

  /** Memory of the texts. */
  get bytes(): number {
    return this.#bytes
  }

  /** @param position - behind the newest; default: right behind it. @returns the position of the message. */
  push(cameraId: string, json: Uint8Array, position = this.#newest + 1): number {
    // What lies between was none of the stream's, unless nothing is kept: then it may have come before this ring.
    if (this.#pushed === this.#gone) this.#oldest = position
    if (this.#pushed - this.#gone === this.maxMessages) this.#forgetOldest()
    const slot = this.#pushed % this.maxMessages
    const kept = this.#kept[slot]?.json ?? new KeptText()
    this.#bytes -= this.#kept[slot] === undefined ? 0 : kept.capacity
    kept.write(json)
    this.#bytes += kept.capacity
    this.#kept[slot] = { position, cameraId, json: kept }
    this.#pushed += 1
    this.#newest = position
    while (this.#bytes > this.maxBytes && this.#pushed - this.#gone > 1) this.#dropOldest()
    return position
  }

  /** So many messages never came. Those before them go: what is kept has no hole. */
  skip(count: number): void {
    while (this.#gone < this.#pushed) this.#dropOldest()
    this.#newest += count
    this.#oldest = this.#newest + 1
  }

  /** @returns the first message of this position or behind it, whose text stands until the next push. */
  next(position: number): KeptMessage | undefined {
    let low = this.#gone
    let high = this.#pushed
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if ((this.#at(middle)?.position ?? 0) < position) low = middle + 1
      else high = middle
    }
    return low < this.#pushed ? this.#at(low) : undefined
  }

  #at(index: number): KeptMessage | undefined {
    return this.#kept[index % this.maxMessages]
  }

  /** Its memory goes with it. */
  #dropOldest(): void {
    const slot = this.#gone % this.maxMessages
    this.#bytes -= this.#kept[slot]?.json.capacity ?? 0
    this.#forgetOldest()
    this.#kept[slot] = undefined
  }

  #forgetOldest(): void {
    this.#oldest = (this.#at(this.#gone)?.position ?? 0) + 1
    this.#gone += 1
  }
}
