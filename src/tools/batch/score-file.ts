import { readFile, rm, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { StoredObject } from '../../buckets/object-store.js'
import { isS3Url } from '../../config/s3-url.js'
import type { BatchLine } from '../../messages/batch-line.js'
import { wallMs } from '../../lifecycle/clock.js'
import { isSystemLimit } from '../../lifecycle/system-limit.js'
import { mediaKind } from '../../sources/media-names.js'
import { type VideoFrame, VideoFrames } from '../../sources/video-frames.js'
import type { BoxPx, Detection } from '../../vision/detection.js'
import { letterboxOf, type SizePx } from '../../vision/letterbox.js'
import type { PictureScorer, ScoredPicture } from '../scoring/picture-scorer.js'
import { BatchInputError } from './batch-errors.js'
import type { ListedFile } from './file-list.js'
import type { S3Store } from './inputs/s3-store.js'
import type { ScoredItem } from './outputs/batch-output.js'
import { type Patience, patiently } from './patience.js'
import { Places } from './places.js'

export type FileScorerOptions = Readonly<{
  scorer: Pick<PictureScorer, 'score'>
  /** What records name. */
  model: BatchLine['model']
  /** Frames of a second of video that are scored. */
  sampleFps: number
  /** Size of the model's input, where it is known: frames of videos are scaled to it as those of cameras are. */
  inputPx: SizePx | undefined
  /** Opened when the first file of a store comes. */
  s3: () => S3Store
  /** Videos of a store are copied here, one for each that is under way. */
  tempDir: string
  /** Pictures that are decoded or scored at once. */
  atOnce: number
  /** Videos that are decoded at once. */
  videosAtOnce: number
  patience: Patience
}>

/** What becomes of a file. Called in the order of its frames. */
export interface FileListener {
  scored(result: ScoredItem): void
  /** A frame has no result. */
  failed(item: string, frame: number, error: unknown): void
  /** How much of a video is done, 0..1. */
  part(share: number): void
  /** Resolves when there is room for more results. */
  room(): Promise<void>
}

/** Scores files, as many at once as the machine is busy with. */
export class FileScorer {
  readonly #places: Places
  readonly #videos: Places

  constructor(readonly options: FileScorerOptions) {
    this.#places = new Places(options.atOnce)
    this.#videos = new Places(options.videosAtOnce)
  }

  /**
   * Scores a picture, or the frames of a video behind those that are done. When the signal aborts, what is begun is finished.
   *
   * @returns whether the file is done.
   * @throws what is wrong with the file; BatchStoppedError
   */
  async score(file: ListedFile, framesDone: () => number, listener: FileListener): Promise<boolean> {
    if (mediaKind(file.name) !== 'video') return this.#picture(file.name, listener)
    return this.#videos.hold(() => this.#video(file, framesDone, listener))
  }

  async #picture(file: string, listener: FileListener): Promise<boolean> {
    const { scorer, model, patience } = this.options
    const { bytes, modifiedMs } = await patiently(() => this.#read(file), patience)
    const { size, detections, inferMs } = await this.#places.hold(() =>
      patiently(() => scorer.score({ kind: 'file', bytes }), patience),
    )
    const line: BatchLine = { item: file, file, ...size, quality: 'ok', model, detections: [...detections] }
    listener.scored({ line, capturedAtMs: modifiedMs ?? wallMs(), inferMs })
    return true
  }

  /** @throws BatchInputError; what the system has against it */
  async #read(file: string): Promise<StoredObject> {
    if (isS3Url(file)) return this.options.s3().read(file)
    try {
      const [bytes, { mtimeMs }] = await Promise.all([readFile(file), stat(file)])
      return { bytes, modifiedMs: mtimeMs }
    } catch (error) {
      throw unreadable(file, error)
    }
  }

  async #video(file: ListedFile, framesDone: () => number, listener: FileListener): Promise<boolean> {
    const { s3, tempDir, patience } = this.options
    const { name, index } = file
    if (!isS3Url(name)) {
      const { mtimeMs } = await stat(name).catch((error: unknown) => {
        throw unreadable(name, error)
      })
      return patiently(() => this.#frames(name, name, mtimeMs, framesDone(), listener), patience)
    }
    const copy = join(tempDir, `video-${index}${extname(name)}`)
    try {
      const { modifiedMs } = await patiently(() => s3().download(name, copy), patience)
      const atMs = modifiedMs ?? wallMs()
      return await patiently(() => this.#frames(name, copy, atMs, framesDone(), listener), patience)
    } finally {
      await rm(copy, { force: true })
    }
  }

  /** Frames are scored side by side and told one after another. */
  async #frames(
    file: string,
    path: string,
    modifiedMs: number,
    framesDone: number,
    listener: FileListener,
  ): Promise<boolean> {
    const { sampleFps, inputPx, patience } = this.options
    const { signal } = patience
    const video = await VideoFrames.open(path, { sampleFps, within: inputPx, signal })
    const stopped = new AbortController()
    let told = Promise.resolve()
    const stop = (error: unknown) => stopped.abort(error)
    try {
      for await (const frame of video) {
        if (frame.frame <= framesDone) continue
        await Promise.all([this.#places.take(), listener.room()])
        if (stopped.signal.aborted) break
        const work = this.#frame(frame, video.size).finally(() => this.#places.leave())
        // It is waited for in its turn; until then nobody hears of its failure.
        work.catch(() => undefined)
        told = told.then(async () => this.#tell(file, frame, modifiedMs, await settled(work), listener))
        told.catch(stop)
        if (video.seconds !== undefined) listener.part((frame.timeMs ?? 0) / 1e3 / video.seconds)
      }
    } finally {
      await told
    }
    return !signal.aborted
  }

  #tell(file: string, frame: VideoFrame, modifiedMs: number, outcome: Outcome, listener: FileListener): void {
    const item = frameItem(file, frame)
    if ('error' in outcome) {
      if (!isOfFrame(outcome.error)) throw outcome.error as Error
      return listener.failed(item, frame.frame, outcome.error)
    }
    const { detections, inferMs } = outcome.scored
    const line: BatchLine = {
      item,
      file,
      frame: frame.frame,
      ...(frame.timeMs !== null && { timeMs: frame.timeMs }),
      ...frame.source,
      quality: frame.quality,
      model: this.options.model,
      detections: [...detections],
    }
    listener.scored({ line, capturedAtMs: modifiedMs + Math.max(0, frame.timeMs ?? 0), inferMs })
  }

  async #frame({ rgbHwc, source }: VideoFrame, size: SizePx): Promise<ScoredPicture> {
    const { scorer, patience } = this.options
    const scored = await patiently(() => scorer.score({ kind: 'pixels', ...size, rgbHwc }), patience)
    const { scale } = letterboxOf(source, size, 'top-left')
    if (scale === 1) return scored
    return { ...scored, detections: scored.detections.map((found) => scaledUp(found, scale, source)) }
  }
}

type Outcome = Readonly<{ scored: ScoredPicture }> | Readonly<{ error: unknown }>

function settled(work: Promise<ScoredPicture>): Promise<Outcome> {
  return work.then(
    (scored) => ({ scored }),
    (error: unknown) => ({ error }),
  )
}

/** `FILE#FRAME/SECONDS`: the time for people, the number because times may be missing or come twice. */
function frameItem(file: string, { frame, timeMs }: VideoFrame): string {
  return `${file}#${frame}${timeMs === null ? '' : `/${(timeMs / 1e3).toFixed(3)}`}`
}

/** From pixels of the scaled frame to those of its picture. */
function scaledUp(detection: Detection, scale: number, { widthPx, heightPx }: SizePx): Detection {
  const { x1, y1, x2, y2 } = detection.boxPx
  const inside = (value: number, most: number) => Math.min(most, Math.max(0, Math.fround(value / scale)))
  const boxPx: BoxPx = {
    x1: inside(x1, widthPx),
    y1: inside(y1, heightPx),
    x2: inside(x2, widthPx),
    y2: inside(y2, heightPx),
  }
  return { ...detection, boxPx }
}

function isOfFrame(error: unknown): boolean {
  return !(error instanceof Error && error.name === 'BatchStoppedError')
}

function unreadable(file: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EACCES' || code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR' || code === 'EPERM')
    return new BatchInputError(
      `${file} cannot be read: ${code}`,
      'See that it is there and may be read by this user.',
      {
        cause: error,
      },
    )
  return isSystemLimit(error)
    ? error
    : new BatchInputError(`${file} cannot be read: ${String(code)}`, 'See that it is a file.', {
        cause: error,
      })
}
