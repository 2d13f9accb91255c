import type { Service } from '../../lifecycle/service.js'
import type { Detection } from '../../vision/detection.js'
import type { SizePx } from '../../vision/letterbox.js'

/** A picture to be scored: the bytes of a JPEG or PNG file, or RGB pixels `[heightPx, widthPx, 3]`. Borrowed until it is scored. */
export type Picture =
  Readonly<{ kind: 'file'; bytes: Uint8Array }> | (SizePx & Readonly<{ kind: 'pixels'; rgbHwc: Uint8Array }>)

export type ScoredPicture = Readonly<{
  /** Of the picture, turned as its EXIF orientation says. */
  size: SizePx
  /** Best first; boxes in pixels of the picture. */
  detections: readonly Detection[]
  /** From the file, or the pixels, to what the model takes. */
  decodeMs: number
  /** The run of the model and the reading of its outputs; of a server, until its answer is there. */
  inferMs: number
}>

/** What scores. */
export type ScorerInfo = Readonly<{
  /** As records and reports name it: `ppe:1`. */
  name: string
  /** Labels that detections may have, as far as they are known. */
  labels: readonly string[]
  /** Where it runs, for people: `cpu`, `http://host:8000`. */
  where: string
  /** What it takes, for people: `416x416`. */
  input: string
  /** The same in pixels, where it is one size. */
  inputPx?: SizePx
  /** Pictures that keep it busy when they are scored at the same time. */
  atOnce: number
}>

/** Pictures in, detections out, by a model of a repository or by a running server. */
export interface PictureScorer extends Service {
  readonly info: ScorerInfo
  /**
   * Any number may be scored at the same time; each takes memory.
   *
   * @throws ImageInvalidError `GANTRY_IMAGE_INVALID` and ImageTooLargeError `GANTRY_TOO_LARGE` for the picture; anything else is about
   *   the model or the server.
   */
  score(picture: Picture): Promise<ScoredPicture>
}
