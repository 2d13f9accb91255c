import { isEmptyPacket, isLoss, isOfJoining, isRefusedPacket } from './damage.js'

/**
 * How soon after a complaint a key frame may still be an older one that was waiting for its turn behind B-frames, or the damaged one
 * itself. It is longer than the reordering of any camera, and shorter than the time between key frames.
 */
export const reorderMs = 250

/**
 * Says whether pictures can be trusted: damage spreads from picture to picture until the next key frame. A stream that is joined between two
 * key frames is sound from the first one on; what a decoder makes of it before is not.
 *
 * Key frame and complaint are told apart by stream time where pictures came between them. The clock alone would not do: losses over UDP are
 * noticed late, and on a busy machine a complaint is read together with a key frame that came half a second after it.
 *
 * Call in the order of the decoder's lines. Stream times are null where the stream has none.
 */
export class SuspectTracker {
  #suspect = false
  #damagedMs = -Infinity
  /** Stream time of the first picture after the last complaint; a key frame that did not end the doubt is one. */
  #shownSinceMs: number | null = null
  /** A key frame has come. */
  #begun = false
  #opened = false
  /** The stream was joined between two of them. */
  #joined = false
  #emptyPacket = false
  #standAlone = false
  #showsWholeOnly = false
  /** A key frame came after the last complaint. */
  #damagedOneTold = false
  #wasDamaged = false

  /** @param aheadMs - how far ahead of the pictures complaints may be, in stream time. */
  constructor(readonly aheadMs = reorderMs) {}

  get suspect(): boolean {
    return this.#suspect || (this.#joined && !this.#begun)
  }

  /** Whether anything was ever complained of, be it for a late beginning alone. */
  get wasDamaged(): boolean {
    return this.#wasDamaged
  }

  /** The decoder shows nothing before a key frame, or the end of a refresh piece by piece: what it shows has begun. So it is of H.264. */
  showsWholeOnly(): void {
    this.#showsWholeOnly = true
  }

  /** Every picture is a key frame, and its decoder gets one after another: damage is of the next one that is told of, and of no other. */
  picturesStandAlone(): void {
    this.#standAlone = true
  }

  /** The stream was looked at, and is decoded from its beginning now; what was found in it is found again, but for what got lost before. */
  opened(): void {
    this.#opened = true
  }

  /**
   * @param text - what {@link isDamage} calls so.
   * @returns whether the complaint counts.
   */
  damage(text: string, nowMs: number): boolean {
    this.#wasDamaged = true
    const ofEmptyPacket = this.#emptyPacket && isRefusedPacket(text)
    this.#emptyPacket = false
    if (ofEmptyPacket || (!this.#opened && !isLoss(text))) return false
    if (!this.#begun && isOfJoining(text)) {
      this.#joined = true
      return false
    }
    this.#suspect = true
    this.#damagedMs = nowMs
    this.#shownSinceMs = null
    this.#damagedOneTold = false
    return true
  }

  /** What the decoder says that is no damage. */
  note(text: string): void {
    this.#emptyPacket = isEmptyPacket(text)
  }

  /** A picture that is no key frame. */
  picture(ptsMs: number | null): void {
    if (this.#showsWholeOnly) this.#begun = true
    this.#shownSinceMs ??= ptsMs
  }

  key(ptsMs: number | null, nowMs: number): void {
    this.#begun = true
    const streamMs = ptsMs === null || this.#shownSinceMs === null ? 0 : ptsMs - this.#shownSinceMs
    const isOver = this.#standAlone
      ? this.#damagedOneTold
      : Math.max(streamMs, nowMs - this.#damagedMs) >= this.aheadMs
    if (isOver) this.#suspect = false
    this.#damagedOneTold = true
    // Time that went back, as in a damaged container, is counted anew.
    if (this.#shownSinceMs === null || streamMs < 0) this.#shownSinceMs = ptsMs
  }
}
