import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CameraConfig } from '../config/camera.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import type { SentPictureSource } from '../vision/frame-source.js'
import { delay } from '../lifecycle/delay.js'
import { systemLimit } from '../lifecycle/system-limit.js'
import { failureBy, type Failure } from './failure-reason.js'
import { byFileName, mediaKind } from './media-names.js'
import type { OpenSession, Session, SessionEnd, SessionListener } from './session.js'
import type { SourceDeps } from './source-deps.js'
import { decodeStill } from './still.js'

export type FolderOptions = Readonly<{
  camera: CameraConfig
  path: string
  /** A picture of it, which is all that is shown. */
  only?: string | undefined
  deps: Pick<SourceDeps, 'format' | 'pool'>
  /** Opens one video of the folder. */
  openVideo: (path: string) => OpenSession
}>

/** One walk through a folder in the order of its names (2.jpg before 10.jpg): stills at the sample rate, videos at their own speed. */
export class FolderSession implements Session {
  readonly ended: Promise<SessionEnd>
  readonly #cut = new AbortController()
  #video: Session | undefined
  #videoCpuSeconds = 0
  #shown = 0
  #unbelieved = false
  #last: SentPictureSource | undefined
  /** Why a file of it could not be opened, where that is a limit of the system. */
  #limit: Failure | undefined
  #nextMs = nowMs()

  constructor(
    readonly options: FolderOptions,
    readonly listener: SessionListener,
  ) {
    this.ended = this.#walk()
  }

  stop(): void {
    this.#cut.abort()
    this.#video?.stop()
  }

  cpuSeconds(): number {
    return this.#videoCpuSeconds + (this.#video?.cpuSeconds() ?? 0)
  }

  sentPicture(): SentPictureSource | undefined {
    return this.#video?.sentPicture?.() ?? this.#last
  }

  waitsForKey(silentMs: number): boolean {
    return this.#video?.waitsForKey?.(silentMs) ?? false
  }

  /** Looping goes on in the session: a new one for each pass would wait its back-off, and one picture is a pass. */
  async #walk(): Promise<SessionEnd> {
    try {
      for (;;) {
        const shownBefore = this.#shown
        const names = await namesOf(this.options)
        if (names.length === 0) return emptyFolder
        for (const name of names) await this.#file(name)
        if (this.#shown === shownBefore && !this.#cut.signal.aborted)
          return this.#limit === undefined ? this.#nothingReadable : { kind: 'failed', ...this.#limit }
        if (!this.options.camera.loop || this.#cut.signal.aborted) return { kind: 'finished' }
      }
    } catch (error) {
      const limit = systemLimit(error)
      if (limit !== undefined) return { kind: 'failed', ...failureBy(limit) }
      return {
        kind: 'failed',
        reason: `the folder cannot be read: ${(error as Error).message}`,
        retry: 'slow',
      }
    }
  }

  get #nothingReadable(): SessionEnd {
    const reason =
      this.options.only === undefined ? 'no file of the folder could be read' : 'the picture cannot be read'
    return { kind: 'failed', reason, retry: 'slow' }
  }

  async #file(name: string): Promise<void> {
    if (this.#cut.signal.aborted) return
    const path = join(this.options.path, name)
    if (mediaKind(name) === 'picture') await this.#still(path, name)
    else await this.#play(path, name)
  }

  async #still(path: string, name: string): Promise<void> {
    const periodMs = 1_000 / this.options.camera.sampleFps
    await delay(Math.max(0, this.#nextMs - nowMs()), this.#cut.signal)
    if (this.#cut.signal.aborted) return
    this.#nextMs = Math.max(nowMs(), this.#nextMs) + periodMs
    try {
      const { camera, deps } = this.options
      const image = await readFile(path)
      const still = await decodeStill(image, camera, deps, { damaged: 'shown' })
      const { rgbHwc, sent, unbelieved, damage } = still
      if (damage !== undefined) this.listener.warning('decode_error', `${name}: ${damage}`)
      if (unbelieved !== undefined && !this.#unbelieved) {
        this.#unbelieved = true
        this.listener.warning('pixel_aspect', `${name}: ${unbelieved}`)
      }
      this.#shown += 1
      this.#last = { kind: 'still', bytes: image, capturedAtMs: wallMs() }
      this.listener.picture(rgbHwc, { ptsMs: null, sent, suspect: damage !== undefined })
    } catch (error) {
      const limit = systemLimit(error)
      // One file that may not be read is no reason to leave the others.
      if (limit !== undefined && limit.code !== 'EACCES') throw error
      if (limit !== undefined) this.#limit = failureBy(limit)
      this.listener.warning('decode_error', `${name}: ${limit?.reason ?? (error as Error).message}`)
    }
  }

  async #play(path: string, name: string): Promise<void> {
    const video = this.options.openVideo(path)({
      picture: (rgbHwc, info) => {
        this.#shown += 1
        // Each video counts from 0: a walk through several has no time of its own.
        this.listener.picture(rgbHwc, { ...info, ptsMs: null })
      },
      warning: (kind, detail) => this.listener.warning(kind, detail),
      decoding: (told) => this.listener.decoding?.(told),
    })
    this.#video = video
    const end = await video.ended
    this.#videoCpuSeconds += video.cpuSeconds()
    this.#video = undefined
    if (end.kind === 'failed' && end.systemHint !== undefined) this.#limit = end
    if (end.kind === 'failed' && !this.#cut.signal.aborted)
      this.listener.warning('decode_error', `${name}: ${end.reason}`)
  }
}

const emptyFolder: SessionEnd = {
  kind: 'failed',
  reason: 'the folder holds no picture (JPEG, PNG) and no video',
  retry: 'never',
}

async function namesOf({ path, only }: FolderOptions): Promise<readonly string[]> {
  if (only !== undefined) return [only]
  const entries = await readdir(path, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && mediaKind(entry.name) !== undefined)
    .map((entry) => entry.name)
    .sort(byFileName)
}
