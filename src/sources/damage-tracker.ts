/**
 * Tells which pictures of a damaged stream cannot be trusted.
 *
 * ffmpeg decodes broken H.264 to pictures with exit code 0; only its log tells. With one thread it reports damage before it delivers
 * the picture concerned. Pictures that refer to a damaged one are wrong too, so doubt lasts until a key frame that was decoded without
 * a complaint.
 */
export class DamageTracker {
  #suspect = false
  #complaint = false

  get suspect(): boolean {
    return this.#suspect
  }

  damaged(): void {
    this.#complaint = true
  }

  decoded(keyFrame: boolean): void {
    if (this.#complaint) this.#suspect = true
    else if (keyFrame) this.#suspect = false
    this.#complaint = false
  }
}
