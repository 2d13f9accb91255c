import type { CameraConfig } from '../../config/camera.js'
import { ownPictureOf } from '../../sources/own-picture.js'
import type { WholePicture } from '../../sources/whole-picture.js'
import type { Detection } from '../../vision/detection.js'
import type { Frame } from '../../vision/frame.js'
import type { SentPictureSource } from '../../vision/frame-source.js'

/** Longest that a picture of its own resolution may take, until the analysed one is given. */
const ownAtMostMs = 5_000

/** What was found in a picture that was analysed for its snapshot. */
export type FoundInStill = Readonly<{ frame: Frame; detections: readonly Detection[] }>

/** The picture of a camera's own resolution that was made last, and what was found in it, for whoever asks again before there is another. */
export class OwnSnapshot {
  #of: SentPictureSource | undefined
  #whole: Promise<WholePicture | undefined> = Promise.resolve(undefined)
  #found: Promise<FoundInStill | undefined> | undefined

  /** @returns `undefined` where it cannot be made. Never rejects. */
  picture(sent: SentPictureSource, camera: CameraConfig): Promise<WholePicture | undefined> {
    if (!isSame(this.#of, sent)) {
      this.#of = sent
      this.#found = undefined
      this.#whole = ownPictureOf(sent, camera, AbortSignal.timeout(ownAtMostMs)).catch(() => undefined)
    }
    return this.#whole
  }

  /** Once for each picture. Never rejects. */
  found(
    picture: WholePicture,
    detect: (jpeg: Uint8Array) => Promise<FoundInStill | undefined>,
  ): Promise<FoundInStill | undefined> {
    this.#found ??= detect(picture.jpeg).catch(() => undefined)
    return this.#found
  }
}

function isSame(one: SentPictureSource | undefined, other: SentPictureSource): boolean {
  if (one?.kind !== other.kind || one.capturedAtMs !== other.capturedAtMs) return false
  return one.kind !== 'still' || other.kind !== 'still' || one.bytes === other.bytes
}
