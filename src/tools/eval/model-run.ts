import { readFile } from 'node:fs/promises'
import { GantryError, hasCode } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { byTrueName, isSystemLimit } from '../../lifecycle/system-limit.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { PictureScorer, ScoredPicture, ScorerInfo } from '../scoring/picture-scorer.js'
import type { Found } from './coco-match.js'
import type { LabelledBox, LabelledPicture, LabelledSet } from './labelled-set.js'
import { alike, type ScoredClasses } from './scored-classes.js'

/** What a model found on one picture, and what is there; boxes of classes that are scored. */
export type ScoredSample = Readonly<{
  picture: LabelledPicture
  size: SizePx
  truths: readonly LabelledBox[]
  found: readonly (Found & { class: number })[]
  decodeMs: number
  inferMs: number
}>

export type UnreadPicture = Readonly<{ name: string; reason: string }>

/** One model over a set, or over what of it was reached. */
export type ModelRun = Readonly<{
  info: ScorerInfo
  /** By place in the set; absent: unreadable, or not reached. */
  samples: ReadonlyMap<number, ScoredSample>
  unread: readonly UnreadPicture[]
  /** Pictures whose size is not what their labels say. */
  otherSize: readonly string[]
  seconds: number
  /** Why it ended before the last picture; undefined after Ctrl-C. */
  failure: Error | undefined
}>

export type RunOptions = Readonly<{
  /** Pictures at the same time; what keeps the scorer busy without it. */
  atOnce?: number
  /** Ends the run; what has been scored is kept. */
  signal: AbortSignal
  onPicture?: (done: number) => void
}>

/** No picture of a set could be read. */
class NoPictureError extends GantryError {
  readonly code = 'GANTRY_IMAGE_INVALID'
  readonly hint = 'Pictures are JPEG or PNG files; look whether the data set was copied whole.'
  constructor({ name, reason }: UnreadPicture, count: number) {
    super(`none of ${count} pictures can be read, such as ${name}: ${reason}`)
    this.name = 'NoPictureError'
  }
}

/**
 * Scores the pictures of a set. One that cannot be read is counted and told; what concerns the model or the server ends the run with what
 * has been scored.
 *
 * @throws NoPictureError `GANTRY_IMAGE_INVALID` if all of them were reached and none can be read
 */
export async function runModel(
  scorer: PictureScorer,
  { pictures }: LabelledSet,
  classes: ScoredClasses,
  { atOnce = scorer.info.atOnce, signal, onPicture }: RunOptions,
): Promise<ModelRun> {
  const samples = new Map<number, ScoredSample>()
  const unread: UnreadPicture[] = []
  const placeOf = placesOf(classes)
  const beganMs = nowMs()
  let next = 0
  let failure: Error | undefined
  const score = async (index: number): Promise<void> => {
    const picture = pictures[index]!
    try {
      const scored = await scorer.score({ kind: 'file', bytes: await readPicture(picture.path) })
      samples.set(index, sampleOf(picture, scored, classes, placeOf))
    } catch (error) {
      if (!isOfPicture(error)) throw error
      unread.push({ name: picture.name, reason: error instanceof Error ? error.message : String(error) })
    }
    onPicture?.(samples.size + unread.length)
  }
  const isGoingOn = () => failure === undefined && !signal.aborted && next < pictures.length
  const lane = async (): Promise<void> => {
    while (isGoingOn()) await score(next++).catch((error: unknown) => (failure ??= asError(error)))
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, pictures.length) }, lane))
  const seconds = (nowMs() - beganMs) / 1_000
  if (unread.length === pictures.length) throw new NoPictureError(unread[0]!, pictures.length)
  return {
    info: scorer.info,
    samples: new Map([...samples].sort(([a], [b]) => a - b)),
    unread,
    otherSize: [...samples.values()].flatMap(({ picture, size }) =>
      isOtherSize(picture, size) ? picture.name : [],
    ),
    seconds,
    failure,
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** @throws SystemLimitError, and what the file system says */
async function readPicture(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path)
  } catch (error) {
    throw byTrueName(`cannot read ${path}`, error)
  }
}

/** Whether it is the picture that is at fault, and not the model, the server or this machine. */
function isOfPicture(error: unknown): boolean {
  if (hasCode(error, 'GANTRY_IMAGE_INVALID') || hasCode(error, 'GANTRY_TOO_LARGE')) return true
  const { code = '', syscall } = error as NodeJS.ErrnoException
  // A file that this user may not read is one like others that are broken.
  return (
    (syscall !== undefined && ['ENOENT', 'EISDIR', 'ENOTDIR', 'ELOOP'].includes(code)) || isForbidden(error)
  )
}

function isForbidden(error: unknown): boolean {
  return (
    isSystemLimit(error) &&
    error instanceof Error &&
    (error.cause as NodeJS.ErrnoException)?.code === 'EACCES'
  )
}

function isOtherSize({ size }: LabelledPicture, { widthPx, heightPx }: SizePx): boolean {
  return size !== undefined && (size.widthPx !== widthPx || size.heightPx !== heightPx)
}

/** Place of each label in the list of those that are scored, looked up once. */
function placesOf({ labels }: ScoredClasses): (label: string) => number {
  const known = new Map<string, number>()
  return (label) => {
    const place = known.get(label) ?? labels.findIndex((each) => alike(each, label))
    known.set(label, place)
    return place
  }
}

function sampleOf(
  picture: LabelledPicture,
  { size, detections, decodeMs, inferMs }: ScoredPicture,
  { placeOf }: ScoredClasses,
  placeOfLabel: (label: string) => number,
): ScoredSample {
  const truths = picture.boxes(size).flatMap((box) => {
    const place = placeOf[box.class]
    return place === undefined ? [] : [{ ...box, class: place }]
  })
  const found = detections.flatMap(({ label, score, boxPx: { x1, y1, x2, y2 } }) => {
    const place = placeOfLabel(label)
    return place < 0 ? [] : [{ class: place, score, box: [x1, y1, x2 - x1, y2 - y1] as const }]
  })
  return { picture, size, truths, found, decodeMs, inferMs }
}
