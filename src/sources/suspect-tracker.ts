/**
 * How soon after a complaint a key frame may still be an older one that was waiting for its turn behind B-frames. It is longer than
 * the reordering of any camera, and shorter than the time between key frames.
 */
const reorderMs = 250

/** Complaints of every decoder that joins a stream between two key frames; nothing has been shown yet. */
const joining =
  /non-existing (PPS|SPS)|decode_slice_header error|no frame!|missing picture|SPS unavailable|PPS id out of range/i

/** Says whether pictures can be trusted: damage spreads from picture to picture until the next key frame. */
export class SuspectTracker {
  #suspect = false
  #damagedMs = -Infinity
  #shown = false

  get suspect(): boolean {
    return this.#suspect
  }

  /** @returns whether the complaint counts. */
  damage(text: string, nowMs: number): boolean {
    if (!this.#shown && joining.test(text)) return false
    this.#suspect = true
    this.#damagedMs = nowMs
    return true
  }

  key(nowMs: number): void {
    this.#shown = true
    if (nowMs - this.#damagedMs >= reorderMs) this.#suspect = false
  }
}
