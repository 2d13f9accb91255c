import type { CameraConfig } from '../../config/camera.js'
import type { Detection } from '../../vision/detection.js'
import {
  countOutcome,
  emptyFrameCounts,
  endedFrames,
  type FrameCounts,
  type FrameOutcome,
} from '../../vision/accounting.js'
import type { Frame, FrameFormat } from '../../vision/frame.js'
import { RepeatedLines } from '../../lifecycle/repeated-lines.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { FrameSource } from '../../vision/frame-source.js'
import type { MainStream } from '../../sources/main-picture.js'
import type { CameraFeed } from './camera-feed.js'
import { HeldFrame } from './held-frame.js'
import type { EngineModel } from './engine-model.js'
import { ModelOrder } from './model-order.js'
import type { CameraAssignment } from './protocol.js'
import { PictureChecks } from './picture-checks.js'
import { SceneReuse } from './scene-reuse.js'
import { OwnSnapshot } from './own-snapshot.js'

/** Decode gaps kept between two results; a camera without results must not grow a list. */
const mostGaps = 256

/** One camera inside the engine: its source, its numbering, its accounts and its last analysed frame. */
export class CameraUnit {
  readonly counts: FrameCounts = emptyFrameCounts()
  feed: CameraFeed | undefined
  readonly order = new ModelOrder<EngineModel>()
  loopbackClosed: CameraAssignment['loopbackClosed'] = { analysed: false, main: false }
  /** Absent where it is the main stream that is analysed. */
  main: MainStream | undefined
  /** Its picture at its own resolution, when one was asked for. */
  own = new OwnSnapshot()
  /** Results leave in the order their frames were analysed, also when some wait for their picture. */
  outbox: Promise<void> = Promise.resolve()
  /** Pictures being encoded; more than one would only be old when it arrives. */
  encoding = 0
  checks = new PictureChecks(0)
  /** Each warning is counted; of those that differ in numbers alone few are logged. */
  readonly warnings = new RepeatedLines()
  /** Absent where every frame is to be analysed. */
  reuse: SceneReuse | undefined
  #nextSeq: number
  #onSettled: (() => void) | undefined
  #lastArrivedMs: number | undefined
  #decodeGapsMs: number[] = []
  #last: HeldFrame | undefined
  #lastDetections: readonly Detection[] = []

  constructor(
    public camera: CameraConfig,
    firstSeq: number,
    /** Among the cameras of the engine, from 0; its own as long as the camera is there. */
    readonly place: number,
    readonly giveBack: (buffer: ArrayBuffer) => void,
  ) {
    this.#nextSeq = firstSeq
  }

  /** Takes the settings that watch the picture; what was learnt of it is forgotten. */
  watchPicture(input: SizePx): void {
    const { frozenAfterMs, staticScene } = this.camera
    this.checks = new PictureChecks(frozenAfterMs)
    this.reuse = staticScene && new SceneReuse(staticScene, input)
  }

  get source(): FrameSource | undefined {
    return this.feed?.source
  }

  /** Another model analyses its frames from now on: no result of the one before stands for them. */
  goesOver({ input }: FrameFormat): void {
    const { staticScene } = this.camera
    this.reuse = staticScene && new SceneReuse(staticScene, input)
  }

  nextSeq(): number {
    return this.#nextSeq++
  }

  received(frame: Frame): void {
    this.counts.received += 1
    if (this.#lastArrivedMs !== undefined && this.#decodeGapsMs.length < mostGaps) {
      this.#decodeGapsMs.push(frame.arrivedMs - this.#lastArrivedMs)
    }
    this.#lastArrivedMs = frame.arrivedMs
  }

  /** Milliseconds between the frames received since the last call. */
  takeDecodeGapsMs(): readonly number[] {
    const gapsMs = this.#decodeGapsMs
    this.#decodeGapsMs = []
    return gapsMs
  }

  ended(outcome: FrameOutcome): void {
    countOutcome(this.counts, outcome)
    if (endedFrames(this.counts) === this.counts.received) this.#onSettled?.()
  }

  /** Resolves once every frame received has ended; for a source that is stopped. */
  settled(): Promise<void> {
    if (endedFrames(this.counts) === this.counts.received) return Promise.resolve()
    return new Promise((resolve) => (this.#onSettled = resolve))
  }

  get last(): Readonly<{ held: HeldFrame; detections: readonly Detection[] }> | undefined {
    return this.#last && { held: this.#last, detections: this.#lastDetections }
  }

  /** Keeps the frame as the newest picture and lets the one before go. */
  keep(frame: Frame, format: FrameFormat, detections: readonly Detection[]): HeldFrame {
    this.#last?.unpin()
    this.#last = new HeldFrame(frame, format, this.giveBack)
    this.#lastDetections = detections
    return this.#last
  }

  dropLast(): void {
    this.#last?.unpin()
    this.#last = undefined
  }

  /** Its main stream is asked no more, and warnings that wait are told. Idempotent. */
  close(): void {
    this.main?.close()
    this.warnings.close()
  }
}
