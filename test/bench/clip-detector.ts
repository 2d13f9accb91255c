/** The shipped detector on the pictures of clips, for benchmarks that ask what a saving does to its boxes. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inferenceSchema } from '../../src/config/inference.js'
import type { CameraDetector } from '../../src/detector/camera-detector.js'
import { createCameraDetector } from '../../src/ensemble/create-camera-detector.js'
import { createLog } from '../../src/lifecycle/log.js'
import { geometryOf, letterboxFilters } from '../../src/sources/geometry.js'
import type { Detection } from '../../src/vision/detection.js'
import { type Frame, type FrameFormat, frameBytes } from '../../src/vision/frame.js'
import type { SizePx } from '../../src/vision/letterbox.js'

export const demoSites = ['dock', 'gate', 'press-line', 'yard'] as const

export function demoClip(site: string): string {
  return fileURLToPath(new URL(`../../pipelines/demo/clips/${site}.mp4`, import.meta.url))
}

/** Pictures of a clip as decoders deliver them. @param options - of ffmpeg, for the input. @param scaling - filters that scale them. */
export function picturesOf(
  clip: string,
  fps: number,
  format: FrameFormat,
  options: readonly string[] = [],
  scaling = letterboxFilters({}, format),
): ArrayBuffer[] {
  const filters = [`fps=${fps}:round=up`, ...scaling].join(',')
  const raw = ['-f', 'rawvideo', '-pix_fmt', 'rgb24', '-']
  const bytes = execFileSync('ffmpeg', ['-v', 'error', ...options, '-i', clip, '-vf', filters, ...raw], {
    maxBuffer: 1024 ** 3,
  })
  const size = frameBytes(format)
  return Array.from(
    { length: Math.floor(bytes.length / size) },
    (_, index) => new Uint8Array(bytes.subarray(index * size, (index + 1) * size)).buffer,
  )
}

const kept = new Map<string, readonly ArrayBuffer[]>()

/** Pictures of the four demo clips, four of each. */
export function demoPictures(format: FrameFormat): readonly ArrayBuffer[] {
  const key = JSON.stringify(format)
  const pictures =
    kept.get(key) ?? demoSites.flatMap((site) => picturesOf(demoClip(site), 1, format, ['-t', '4']))
  kept.set(key, pictures)
  return pictures
}

export class ClipDetector {
  #answered: (detections: readonly Detection[]) => void = () => undefined

  private constructor(readonly detector: CameraDetector) {}

  static async open(): Promise<ClipDetector> {
    let answered: (detections: readonly Detection[]) => void = () => undefined
    const detector = await createCameraDetector({
      repositories: fileURLToPath(new URL('../../models', import.meta.url)),
      ensemble: 'ppe',
      inference: inferenceSchema.parse({ providers: ['cpu'], instances: 1 }),
      log: createLog({ level: 'error', format: 'json' }, 'bench'),
      listener: {
        detected: (_, result) => answered(result.detections),
        superseded: () => undefined,
        shed: (_, cause, error) => {
          throw error instanceof Error ? error : new Error(cause)
        },
        instanceExited: () => undefined,
        hung: () => undefined,
      },
    })
    const opened = new ClipDetector(detector)
    answered = (detections) => opened.#answered(detections)
    return opened
  }

  /** @param options - of ffmpeg, for the input. @param scaling - as {@link picturesOf} has it. */
  framesOf(
    clip: string,
    source: SizePx,
    fps: number,
    options: readonly string[] = [],
    scaling?: string[],
  ): Frame[] {
    const { format } = this.detector.info
    const { regionPx, letterbox } = geometryOf(source, {}, format)
    return picturesOf(clip, fps, format, options, scaling).map((rgbHwc, index) => {
      const atMs = (index * 1_000) / fps
      const times = { capturedAtMs: atMs, arrivedMs: atMs, ptsMs: atMs }
      return {
        cameraId: 'bench',
        seq: index + 1,
        ...times,
        quality: 'ok',
        source,
        regionPx,
        letterbox,
        rgbHwc,
      }
    })
  }

  detect(frame: Frame): Promise<readonly Detection[]> {
    return new Promise((resolve) => {
      this.#answered = resolve
      this.detector.offer({ ...frame, rgbHwc: frame.rgbHwc.slice(0) })
    })
  }

  stop(): Promise<void> {
    return this.detector.stop(2_000)
  }
}

/** Of `those`, how many have no partner among `others`: of the same class, with an IoU of 0.5. */
export function alone(those: readonly Detection[], others: readonly Detection[]): number {
  return those.filter((one) => !others.some((o) => o.label === one.label && iou(o.boxPx, one.boxPx) >= 0.5))
    .length
}

function iou(a: Detection['boxPx'], b: Detection['boxPx']): number {
  const across = Math.max(0, Math.min(a.x2, b.x2) - Math.max(a.x1, b.x1))
  const down = Math.max(0, Math.min(a.y2, b.y2) - Math.max(a.y1, b.y1))
  const area = (box: Detection['boxPx']) => (box.x2 - box.x1) * (box.y2 - box.y1)
  return (across * down) / (area(a) + area(b) - across * down)
}
