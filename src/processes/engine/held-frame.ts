import type { Frame, FrameFormat } from '../../vision/frame.js'

/**
 * A frame kept after inference for pictures, with its buffer's way home.
 *
 * The holder owns it until `drop`; encoders that run beside pin it. The buffer goes back once, when the holder has dropped it and
 * the last pin is gone.
 */
export class HeldFrame {
  #pins = 1

  constructor(
    readonly frame: Frame,
    readonly format: FrameFormat,
    readonly giveBack: (buffer: ArrayBuffer) => void,
  ) {}

  pin(): void {
    this.#pins += 1
  }

  unpin(): void {
    this.#pins -= 1
    if (this.#pins === 0) this.giveBack(this.frame.rgbHwc)
  }
}
