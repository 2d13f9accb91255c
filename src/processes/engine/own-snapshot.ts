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

/** Which picture something was made of: its time, and of a still the bytes, which others hold as well. The packets of a key frame are let go. */
type Origin = Readonly<{ capturedAtMs: number; kind: SentPictureSource['kind']; bytes?: Uint8Array }>

/**
 * The picture of a camera's own resolution that was made last, for whoever asks again before there is another: a page that shows it asks every
 * second, and many cameras have a key frame every few.
 */
export class OwnSnapshot {
  #last: Readonly<{ of: Origin; made: OwnPicture }> | undefined

  of(sent: SentPictureSource, camera: CameraConfig): OwnPicture {
    const { kind, capturedAtMs } = sent
    const of = { kind, capturedAtMs, ...(sent.kind === 'still' && { bytes: sent.bytes }) }
    if (this.#last === undefined || !isSame(this.#last.of, of)) {
      const whole = ownPictureOf(sent, camera, AbortSignal.timeout(ownAtMostMs)).catch(() => undefined)
      this.#last = { of, made: new OwnPicture(whole) }
    }
    return this.#last.made
  }
}

/** One picture, what was found in it, and both as a snapshot: each is made once, when it is asked for. */
export class OwnPicture {
  #found: Promise<FoundInStill | undefined> | undefined
  /** With boxes and without. */
  readonly #drawn = new Map<boolean, Promise<Uint8Array>>()

  /** @param whole - `undefined` where it cannot be made. Never rejects. */
  constructor(readonly whole: Promise<WholePicture | undefined>) {}

  /** Never rejects. */
  found(
    picture: WholePicture,
    detect: (jpeg: Uint8Array) => Promise<FoundInStill | undefined>,
  ): Promise<FoundInStill | undefined> {
    this.#found ??= detect(picture.jpeg).catch(() => undefined)
    return this.#found
  }

  /** @param draw - makes the JPEG. What it throws, everybody gets who asks for this one. */
  drawn(overlay: boolean, draw: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const jpeg = this.#drawn.get(overlay) ?? draw()
    this.#drawn.set(overlay, jpeg)
    return jpeg
  }
}

function isSame(one: Origin, other: Origin): boolean {
  return one.kind === other.kind && one.capturedAtMs === other.capturedAtMs && one.bytes === other.bytes
}
