/**
 * What a detector of free size finds at the square of its export and at the shape of the cameras, and what its runs take.
 *
 *     npm run build:server && npx tsx test/bench/input-shape.bench.ts MODEL.onnx 640x640 640x384 [clip...]
 *
 * The clips, those of the demo without any, at 5 frames a second, each frame at both sizes in turn. `again` is the share of the boxes of
 * the first size that the second finds too (same class, IoU 0.5), `more` what it finds beside them; `right` of `labelled` and `wrong` are
 * held against the truth, where the clip has one. `runMs` are medians. What `MODEL.onnx.pbtxt` says is added to the configuration.
 */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { framesPerSecond, observed } from '../../sim/index.js'
import { inferenceSchema } from '../../src/config/inference.js'
import type { CameraDetector, DetectorResult } from '../../src/detector/camera-detector.js'
import { createCameraDetector } from '../../src/ensemble/create-camera-detector.js'
import { createLog } from '../../src/lifecycle/log.js'
import type { Detection } from '../../src/vision/detection.js'
import { frameBytes } from '../../src/vision/frame.js'
import { letterboxOf, type SizePx } from '../../src/vision/letterbox.js'
import { letterboxFilters } from '../../src/sources/geometry.js'
import { countAgainstTruth, type Tally } from '../support/against-truth.js'
import { quantile, report } from './bench.js'

const fps = 5
const [model = '', first = '640x640', second = '640x384', ...given] = process.argv.slice(2)
const demo = ['dock', 'gate', 'press-line', 'yard'].map((name) =>
  fileURLToPath(new URL(`../../pipelines/demo/clips/${name}.mp4`, import.meta.url)),
)

type Running = Readonly<{
  detector: CameraDetector
  detect: (clip: Clip, index: number) => Promise<DetectorResult>
}>
type Clip = Readonly<{ source: SizePx; pictures: readonly Uint8Array[] }>

async function running(repository: string, size: string): Promise<Running> {
  const name = `at_${size}`
  mkdirSync(join(repository, name, '1'), { recursive: true })
  copyFileSync(model, join(repository, name, '1/model.onnx'))
  const parameter = `parameters { key: "gantry.input_size" value { string_value: "${size}" } }`
  const more = existsSync(`${model}.pbtxt`) ? readFileSync(`${model}.pbtxt`, 'utf8') : ''
  writeFileSync(join(repository, name, 'config.pbtxt'), `${parameter}\n${more}`)
  let answered: (result: DetectorResult) => void = () => undefined
  const detector = await createCameraDetector({
    repositories: repository,
    ensemble: name,
    inference: inferenceSchema.parse({ providers: ['cpu'], instances: 1 }),
    log: createLog({ level: 'error', format: 'json' }, 'bench'),
    listener: {
      detected: (_, result) => answered(result),
      superseded: () => undefined,
      shed: (_, cause, error) => {
        throw error instanceof Error ? error : new Error(cause)
      },
      instanceExited: () => undefined,
      hung: () => undefined,
    },
  })
  const { format } = detector.info
  const detect = ({ source, pictures }: Clip, index: number) =>
    new Promise<DetectorResult>((resolve) => {
      answered = resolve
      const atMs = (index * 1_000) / fps
      detector.offer({
        cameraId: 'bench',
        seq: index + 1,
        capturedAtMs: atMs,
        arrivedMs: atMs,
        ptsMs: atMs,
        quality: 'ok',
        source,
        regionPx: { x: 0, y: 0, ...source },
        letterbox: letterboxOf(source, format.input, format.align),
        rgbHwc: new Uint8Array(pictures[index]!).buffer,
      })
    })
  return { detector, detect }
}

/** As the decoder of a camera gives it. */
function clipAt(path: string, { info }: CameraDetector): Clip {
  const probe = [
    '-v',
    'error',
    '-select_streams',
    'v',
    '-show_entries',
    'stream=width,height',
    '-of',
    'csv=p=0',
  ]
  const [widthPx = 0, heightPx = 0] = execFileSync('ffprobe', [...probe, path], { encoding: 'utf8' })
    .trim()
    .split(',')
    .map(Number)
  const filters = [`fps=${fps}`, ...letterboxFilters({}, info.format)].join(',')
  const raw = ['-f', 'rawvideo', '-pix_fmt', 'rgb24', '-']
  const bytes = execFileSync('ffmpeg', ['-v', 'error', '-i', path, '-vf', filters, ...raw], {
    maxBuffer: 1024 ** 3,
  })
  const size = frameBytes(info.format)
  const pictures = Array.from({ length: Math.floor(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  )
  return { source: { widthPx, heightPx }, pictures }
}

function iou(a: Detection['boxPx'], b: Detection['boxPx']): number {
  const across = Math.max(0, Math.min(a.x2, b.x2) - Math.max(a.x1, b.x1))
  const down = Math.max(0, Math.min(a.y2, b.y2) - Math.max(a.y1, b.y1))
  const area = (box: Detection['boxPx']) => (box.x2 - box.x1) * (box.y2 - box.y1)
  return (across * down) / (area(a) + area(b) - across * down)
}

/** Of `those`, how many have a partner among `others`. */
function found(those: readonly Detection[], others: readonly Detection[]): number {
  return those.filter((one) => others.some((o) => o.label === one.label && iou(o.boxPx, one.boxPx) >= 0.5))
    .length
}

const sumOf = (tallies: ReadonlyMap<string, Tally>) =>
  [...tallies.values()].reduce(
    (sum, { right, wrong, labelled }) => ({
      right: sum.right + right,
      wrong: sum.wrong + wrong,
      labelled: sum.labelled + labelled,
    }),
    { right: 0, wrong: 0, labelled: 0 },
  )

const repository = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
try {
  const sides = [await running(repository, first), await running(repository, second)]
  for (const path of given.length > 0 ? given : demo) {
    const name = basename(path, '.mp4')
    const truthAt = demo.includes(path) ? await observed(`demo-${name}`) : undefined
    const clips = sides.map(({ detector }) => clipAt(path, detector))
    const taken = sides.map(() => ({ runMs: [] as number[], boxes: 0, tallies: new Map<string, Tally>() }))
    const pairs = { again: 0, back: 0 }
    for (let index = 0; index < clips[0]!.pictures.length; index += 1) {
      const both: DetectorResult[] = []
      for (const [side, { detect }] of sides.entries()) {
        const result = await detect(clips[side]!, index)
        both.push(result)
        const { runMs, tallies } = taken[side]!
        runMs.push(result.timingsMs.infer)
        taken[side]!.boxes += result.detections.length
        const truth = truthAt?.(Math.round((index * framesPerSecond) / fps))
        if (truth) countAgainstTruth(result.detections, truth, tallies)
      }
      const [one, other] = both.map(({ detections }) => detections) as [Detection[], Detection[]]
      pairs.again += found(one, other)
      pairs.back += found(other, one)
    }
    const [one, other] = taken as [(typeof taken)[number], (typeof taken)[number]]
    report(`input-shape ${name}`, 'share', {
      again: pairs.again / Math.max(1, one.boxes),
      more: (other.boxes - pairs.back) / Math.max(1, one.boxes),
      boxes: one.boxes,
      boxesOfSecond: other.boxes,
      ...(truthAt && {
        labelled: sumOf(one.tallies).labelled,
        right: sumOf(one.tallies).right,
        rightOfSecond: sumOf(other.tallies).right,
        wrong: sumOf(one.tallies).wrong,
        wrongOfSecond: sumOf(other.tallies).wrong,
      }),
      runMs: quantile(one.runMs, 0.5),
      runShare: quantile(other.runMs, 0.5) / quantile(one.runMs, 0.5),
      sizes: `${first} ${second}`,
    })
  }
  for (const { detector } of sides) await detector.stop(2_000)
} finally {
  rmSync(repository, { recursive: true, force: true })
}
