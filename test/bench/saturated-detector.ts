/** The detector of the cameras, saturated: cameras offer a new frame as soon as their last one has ended. */
import { setTimeout as pause } from 'node:timers/promises'
import { inferenceSchema, type InferenceConfig } from '../../src/config/inference.js'
import type { CameraDetector, DetectorInfo, DetectorResult } from '../../src/detector/camera-detector.js'
import { createCameraDetector } from '../../src/ensemble/create-camera-detector.js'
import { createLog } from '../../src/lifecycle/log.js'
import { type Frame, frameBytes, type FrameFormat } from '../../src/vision/frame.js'
import { FramePool } from '../../src/vision/frame-pool.js'

export type SaturatedOptions = Readonly<{
  repository: string
  ensemble: string
  inference: Partial<InferenceConfig>
  /** Absent: three times as many as fill the runs of all instances. */
  cameras?: number
  /** What they show, in turn; absent: grey. */
  pictures?: (format: FrameFormat) => readonly ArrayBuffer[]
  /** Told every result. */
  detected?: (result: DetectorResult) => void
}>

export class SaturatedDetector {
  #ended = 0
  #saturating = false
  #inFlight = 0
  #drained: () => void = () => undefined

  private constructor(
    readonly detector: CameraDetector,
    readonly cameras: number,
    readonly pool: FramePool,
  ) {}

  static async start(options: SaturatedOptions): Promise<SaturatedDetector> {
    // Names made before the detector exists, as its listener needs them.
    let ended: (frame: Frame, inferred: boolean) => void = () => undefined
    const detector = await createCameraDetector({
      repositories: options.repository,
      ensemble: options.ensemble,
      inference: inferenceSchema.parse(options.inference),
      log: createLog({ level: 'warn', format: 'json' }, 'bench'),
      listener: {
        detected: (frame, result) => {
          options.detected?.(result)
          ended(frame, true)
        },
        superseded: (frame) => ended(frame, false),
        shed: (frame, cause, error) => {
          if (cause === 'inference_failed') throw error instanceof Error ? error : new Error(cause)
          ended(frame, false)
        },
        hung: (error) => {
          throw error as Error
        },
        instanceExited: (error) => {
          throw error
        },
      },
    })
    const { format, instances, maxBatchSize } = detector.info
    const cameras = options.cameras ?? Math.max(8, 3 * instances * maxBatchSize)
    const pool = new FramePool(frameBytes(format), cameras)
    const shown = options.pictures?.(format) ?? [new Uint8Array(frameBytes(format)).fill(114).buffer]
    // Copies: buffers move to the instances, and those that are written over and over are in the caches already.
    for (let camera = 0; camera < cameras; camera += 1) pool.give(shown[camera % shown.length]!.slice(0))
    const bench = new SaturatedDetector(detector, cameras, pool)
    ended = (frame, inferred) => bench.#frameEnded(frame, inferred)
    return bench
  }

  /** Waits until batches have all sizes: the figures are of a detector that has run for a while. */
  async warm(): Promise<void> {
    while ((this.info.sizes?.toCome.length ?? 0) > 0) await pause(20)
  }

  get info(): DetectorInfo {
    return this.detector.info
  }

  /** Begins with all instances busy; the frames on their way at the end are left to `drain`. @returns frames with a result. */
  async run(forMs: number): Promise<number> {
    this.#ended = 0
    this.#saturating = true
    for (let camera = 0; camera < this.cameras; camera++) this.#offer(`cam-${camera}`, 1)
    await pause(forMs)
    return this.#ended
  }

  async drain(): Promise<void> {
    this.#saturating = false
    if (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#drained = resolve))
  }

  stop(): Promise<void> {
    return this.detector.stop(5_000)
  }

  #offer(cameraId: string, seq: number): void {
    const size = this.detector.info.format.input
    this.#inFlight += 1
    this.detector.offer({
      cameraId,
      seq,
      capturedAtMs: Date.now(),
      arrivedMs: 0,
      ptsMs: 0,
      quality: 'ok',
      source: size,
      regionPx: { x: 0, y: 0, ...size },
      letterbox: { scale: 1, padXPx: 0, padYPx: 0 },
      rgbHwc: this.pool.take(),
    })
  }

  #frameEnded({ cameraId, seq, rgbHwc }: Frame, inferred: boolean): void {
    this.pool.give(rgbHwc)
    this.#inFlight -= 1
    if (inferred) this.#ended += 1
    if (this.#saturating) this.#offer(cameraId, seq + 1)
    else if (this.#inFlight === 0) this.#drained()
  }
}
