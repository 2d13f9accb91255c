/**
 * How soon after a complaint a key frame may still be an older one that was waiting for its turn behind B-frames, or the damaged one
 * itself. It is longer than the reordering of any camera, and shorter than the time between key frames.
 */
const reorderMs = 250

/** Complaints of every decoder that joins a stream between two key frames; nothing has been shown yet. */
const joining =
  /non-existing (PPS|SPS)|decode_slice_header error|no frame!|missing picture|SPS unavailable|PPS id out of range/i

/**
 * Says whether pictures can be trusted: damage spreads from picture to picture until the next key frame.
 *
 * Key frame and complaint are told apart by stream time where pictures came between them. The clock alone would not do: losses over UDP are
 * noticed late, and on a busy machine a complaint is read together with a key frame that came half a second after it.
 *
 * Call in the order of the decoder's lines. Stream times are null where the stream has none.
 */
export class SuspectTracker {
  #suspect = false
  #damagedMs = -Infinity
  /** Stream time of the first picture after the last complaint. */
  #shownSinceMs: number | null = null
  #shown = false

  get suspect(): boolean {
    return this.#suspect
  }

  /** @returns whether the complaint counts. */
  damage(text: string, nowMs: number): boolean {
    if (!this.#shown && joining.test(text)) return false
    this.#suspect = true
    this.#damagedMs = nowMs
    this.#shownSinceMs = null
    return true
  }

  /** A picture that is no key frame. */
  picture(ptsMs: number | null): void {
    this.#shownSinceMs ??= ptsMs
  }

  key(ptsMs: number | null, nowMs: number): void {
    this.#shown = true
    const streamMs = ptsMs === null || this.#shownSinceMs === null ? 0 : ptsMs - this.#shownSinceMs
    if (Math.max(streamMs, nowMs - this.#damagedMs) >= reorderMs) this.#suspect = false
  }
}
