/**
 * What it costs to reuse results while the scene stands still: how many runs are saved, and how much the reused results miss.
 *
 *     npm run build:server && npx tsx test/bench/static-scene.bench.ts [minChange] [maxAgeMs] [clip...]
 *
 * Every frame of a clip, at 5 frames a second, goes through the detector, and through the very decision the engine makes. Where a
 * result would have been reused, its boxes are held against the detector's own for that frame: `missed` of these have no reused box
 * of their class with an IoU of 0.5, `stale` are reused boxes that stand for nothing.
 */
import { execFileSync } from 'node:child_process'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inferenceSchema } from '../../src/config/inference.js'
import { cameraSchema } from '../../src/config/camera.js'
import type { Detection } from '../../src/vision/detection.js'
import { SceneReuse } from '../../src/processes/engine/scene-reuse.js'
import type { CameraDetector } from '../../src/detector/camera-detector.js'
import { createCameraDetector } from '../../src/ensemble/create-camera-detector.js'
import { type Frame, frameBytes } from '../../src/vision/frame.js'
import { letterboxOf, scaledSizePx } from '../../src/vision/letterbox.js'
import { createLog } from '../../src/lifecycle/log.js'
import { report } from './bench.js'

const fps = 5
const source = { widthPx: 1280, heightPx: 720 }
const [minChange = '10', maxAgeMs = '1000', ...given] = process.argv.slice(2)
const demo = ['dock', 'gate', 'press-line', 'yard'].map((name) =>
  fileURLToPath(new URL(`../../pipelines/demo/clips/${name}.mp4`, import.meta.url)),
)
const { staticScene } = cameraSchema.parse({
  id: 'bench',
  url: 'push:',
  staticScene: { minChange: Number(minChange), maxAgeMs: Number(maxAgeMs) },
})
if (!staticScene) throw new Error('no settings')

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

function framesOf(clip: string, { info }: CameraDetector): Frame[] {
  const { format } = info
  const { widthPx, heightPx } = format.input
  const letterbox = letterboxOf(source, format.input, format.align)
  const scaled = scaledSizePx(source, format.input)
  const filter = `fps=${fps},scale=${scaled.widthPx}:${scaled.heightPx},pad=${widthPx}:${heightPx}:${letterbox.padXPx}:${letterbox.padYPx}:color=0x727272`
  const raw = ['-f', 'rawvideo', '-pix_fmt', 'rgb24', '-']
  const bytes = execFileSync('ffmpeg', ['-v', 'error', '-i', clip, '-vf', filter, ...raw], {
    maxBuffer: 1024 ** 3,
  })
  const size = frameBytes(format)
  return Array.from({ length: Math.floor(bytes.length / size) }, (_, index) => {
    const atMs = (index * 1_000) / fps
    const rgbHwc = new Uint8Array(bytes.subarray(index * size, (index + 1) * size)).buffer
    const regionPx = { x: 0, y: 0, ...source }
    const times = { capturedAtMs: atMs, arrivedMs: atMs, ptsMs: atMs }
    return { cameraId: 'bench', seq: index + 1, ...times, quality: 'ok', source, regionPx, letterbox, rgbHwc }
  })
}

function detect(frame: Frame): Promise<readonly Detection[]> {
  return new Promise((resolve) => {
    answered = resolve
    detector.offer({ ...frame, rgbHwc: frame.rgbHwc.slice(0) })
  })
}

function iou(a: Detection['boxPx'], b: Detection['boxPx']): number {
  const across = Math.max(0, Math.min(a.x2, b.x2) - Math.max(a.x1, b.x1))
  const down = Math.max(0, Math.min(a.y2, b.y2) - Math.max(a.y1, b.y1))
  const area = (box: Detection['boxPx']) => (box.x2 - box.x1) * (box.y2 - box.y1)
  return (across * down) / (area(a) + area(b) - across * down)
}

/** Of `those`, how many have no partner among `others`. */
function alone(those: readonly Detection[], others: readonly Detection[]): number {
  return those.filter((one) => !others.some((o) => o.label === one.label && iou(o.boxPx, one.boxPx) >= 0.5))
    .length
}

for (const clip of given.length > 0 ? given : demo) {
  const reuse = new SceneReuse(staticScene, detector.info.format.input)
  const sum = { frames: 0, reused: 0, objects: 0, missed: 0, boxes: 0, stale: 0 }
  for (const frame of framesOf(clip, detector)) {
    const own = await detect(frame)
    const reused = reuse.reusable(frame)
    sum.frames += 1
    if (reused === undefined) {
      reuse.analysed(frame, own)
      continue
    }
    sum.reused += 1
    sum.objects += own.length
    sum.missed += alone(own, reused.detections)
    sum.boxes += reused.detections.length
    sum.stale += alone(reused.detections, own)
  }
  report(`static-scene ${basename(clip)}`, 'share', {
    savedRuns: sum.reused / sum.frames,
    missedShare: sum.missed / Math.max(1, sum.objects),
    staleShare: sum.stale / Math.max(1, sum.boxes),
    ...sum,
    minChange,
    maxAgeMs,
  })
}
await detector.stop(2_000)
