import type { SentPicture } from './pixel-aspect.js'

/** What is known of a picture besides its pixels. */
export type PictureInfo = Readonly<{
  ptsMs: number | null
  sent: SentPicture
  suspect: boolean
  /** When it came, by the clock and by wall time, where it was decoded after that; absent: now. */
  arrived?: Readonly<{ arrivedMs: number; wallMs: number }>
}>

/**
 * Brings the pixels of a picture (stdout) and the line about it (stderr) together. Both come in the same order, either may come first.
 * At most one frame is held; the reader must stop while `holding`.
 */
export class PicturePairing {
  readonly #infos: PictureInfo[] = []
  #held: ArrayBuffer | null = null

  constructor(readonly paired: (rgbHwc: ArrayBuffer, info: PictureInfo) => void) {}

  get holding(): boolean {
    return this.#held !== null
  }

  pixels(rgbHwc: ArrayBuffer): void {
    const info = this.#infos.shift()
    if (info === undefined) this.#held = rgbHwc
    else this.paired(rgbHwc, info)
  }

  /** @returns whether a held frame was let go, so that reading can go on. */
  info(info: PictureInfo): boolean {
    const held = this.#held
    if (held === null) {
      this.#infos.push(info)
      return false
    }
    this.#held = null
    this.paired(held, info)
    return true
  }

  /** Takes back the frame that waits in vain. */
  release(): ArrayBuffer | null {
    const held = this.#held
    this.#held = null
    this.#infos.length = 0
    return held
  }
}
