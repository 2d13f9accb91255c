import type { StaticSceneConfig } from '../../config/camera.js'
import type { Detection } from '../../vision/detection.js'
import type { Frame } from '../../vision/frame.js'
import type { SizePx } from '../../vision/letterbox.js'
import { sceneChange, sceneSignature } from '../../vision/scene-signature.js'

/** A result that stands for a later frame too. */
export type ReusedResult = Readonly<{ seq: number; detections: readonly Detection[] }>

type Analysed = ReusedResult & Readonly<{ signature: Uint8Array; arrivedMs: number; source: SizePx }>

/**
 * Decides for one camera whether a frame shows what an analysed one showed, so that its result can be reused.
 *
 * A frame is compared with the frame whose result would be reused, never with the one before it: a slow change adds up until it
 * counts. While a frame of the camera is being analysed nothing is reused, so that results stay in order.
 */
export class SceneReuse {
  readonly #inFlight = new Map<number, Uint8Array>()
  #analysed: Analysed | undefined

  constructor(
    readonly config: StaticSceneConfig,
    readonly input: SizePx,
  ) {}

  /** @returns the result to use for the frame; without one it is to be analysed, and `analysed` or `dropped` will follow. */
  reusable(frame: Frame): ReusedResult | undefined {
    const signature = sceneSignature(frame.rgbHwc, this.input)
    const last = this.#analysed
    if (last !== undefined && this.#inFlight.size === 0 && this.#stands(last, frame, signature)) return last
    this.#inFlight.set(frame.seq, signature)
    return undefined
  }

  analysed(frame: Frame, detections: readonly Detection[]): void {
    const signature = this.#inFlight.get(frame.seq)
    this.#inFlight.delete(frame.seq)
    if (signature === undefined || frame.quality === 'suspect') return
    const { seq, arrivedMs, source } = frame
    this.#analysed = { seq, detections, signature, arrivedMs, source }
  }

  /** The frame ended without a result. */
  dropped(frame: Frame): void {
    this.#inFlight.delete(frame.seq)
  }

  #stands(last: Analysed, frame: Frame, signature: Uint8Array): boolean {
    return (
      frame.quality === 'ok' &&
      frame.arrivedMs - last.arrivedMs < this.config.maxAgeMs &&
      frame.source.widthPx === last.source.widthPx &&
      frame.source.heightPx === last.source.heightPx &&
      sceneChange(last.signature, signature) < this.config.minChange
    )
  }
}
