import { execFile, execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readOnnx } from '../../../src/repository/onnx-file.js'
import { readOnnxNodes } from '../../../src/repository/onnx-nodes.js'
import { readWideWeights } from '../../../src/backends/onnxruntime/wide-weights.js'
import { onPath } from '../../../scripts/lib/system-tools.mjs'
import { addModel } from '../../support/onnx-models.js'
import { quantisedDetector, quantisedLayers } from '../../support/quantised-models.js'
import { tempDir } from '../../support/temp-dir.js'

/** `qemu-x86_64` runs a program on a processor that it imitates: Haswell has AVX2 and no VNNI, whatever this machine has. */
const qemu = 'qemu-x86_64'
const canImitate = process.arch === 'x64' && onPath(qemu)
const ways = {
  avx2: [qemu, '-cpu', 'Haswell', process.execPath],
  native: [process.execPath],
} as const

type Way = keyof typeof ways
type Input = Readonly<{ type: string; shape: readonly number[]; data: Uint8Array }>
type Job = Readonly<{ model: string; exact?: boolean; input: Input }>

const repository = join(import.meta.dirname, '../../../models')
const clips = join(import.meta.dirname, '../../../pipelines/demo/clips')
const child = join(import.meta.dirname, '../../support/run-models.mjs')
const run = promisify(execFile)
const exactly = { 'session.x64quantprecision': '1' }

/** Runs models in one process of that kind. @returns the first output of each; `cameras`: detections of each. */
async function runAll(
  way: Way,
  jobs: readonly Job[],
  cameras: readonly Readonly<{ repository: string; model: string }>[] = [],
): Promise<{ outputs: Float32Array[]; cameras: { score: number }[][] }> {
  const dir = tempDir()
  const outputs = jobs.map((_, index) => join(dir, `out-${index}`))
  const cameraOutputs = cameras.map((_, index) => join(dir, `camera-${index}`))
  const models = jobs.map(({ model, exact, input: { data, ...input } }, index) => {
    const file = join(dir, `in-${index}`)
    writeFileSync(file, data)
    return { model, sessionConfig: exact ? exactly : {}, input: { ...input, file }, output: outputs[index] }
  })
  const list = join(dir, 'jobs.json')
  writeFileSync(
    list,
    JSON.stringify({
      models,
      cameras: cameras.map((job, index) => ({ ...job, output: cameraOutputs[index] })),
    }),
  )
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const [program, ...args] = ways[way]
  await run(program, [...args, child, list], {
    env: { ...process.env, ORT_DISABLE_TELEMETRY: '1' },
    signal: abort.signal,
  })
  return {
    outputs: outputs.map((path) => new Float32Array(new Uint8Array(readFileSync(path)).buffer)),
    cameras: cameraOutputs.map((path) => JSON.parse(readFileSync(path, 'utf8')) as { score: number }[]),
  }
}

const [widthPx, heightPx] = [800, 448]

/** A picture of a demo clip, or a part of it at full size, as a camera that looks there would send it. */
function picture(clip: string, frame: number, part = '1280:720:0:0', size = `${widthPx}:${heightPx}`): Input {
  const filter = `select=eq(n\\,${frame}),crop=${part},scale=${size}:flags=bilinear`
  const raw = ['-frames:v', '1', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-']
  const data = execFileSync(
    'ffmpeg',
    ['-v', 'error', '-i', join(clips, `${clip}.mp4`), '-vf', filter, ...raw],
    {
      maxBuffer: 8e6,
    },
  )
  const [width, height] = size.split(':').map(Number)
  return { type: 'uint8', shape: [1, height!, width!, 3], data }
}

const labels = ['helmet', 'head', 'person', 'vest', 'no_vest', 'machinery', 'vehicle']

/** The best score of each label in an output `[11, points]`. */
function bestScores(output: Float32Array): number[] {
  const points = output.length / (4 + labels.length)
  return labels.map((_, label) =>
    output
      .subarray((4 + label) * points, (5 + label) * points)
      .reduce((best, score) => Math.max(best, score), 0),
  )
}

const headIn = (output: Float32Array) => bestScores(output)[labels.indexOf('head')]!

function largestDifference(a: Float32Array, b: Float32Array, from = 0): number {
  expect(a.length).toBe(b.length)
  let largest = 0
  for (let at = from; at < a.length; at++) largest = Math.max(largest, Math.abs(a[at]! - b[at]!))
  return largest
}

const scoresFrom = (output: Float32Array) => (output.length / (4 + labels.length)) * 4

/** The same model with weights of 8 bits in place of 7: twice the steps, half their size. */
function widened(path: string): string {
  const { nodes, constants } = readOnnx(path, readOnnxNodes)
  const copy = join(tempDir(), 'model.onnx')
  copyFileSync(path, copy)
  const bytes = readFileSync(copy)
  const halved = new Set<string>()
  for (const { op, inputs } of nodes) {
    const values = constants.get(inputs[0] ?? '')
    const scales = constants.get(inputs[1] ?? '')
    if (op !== 'DequantizeLinear' || values?.data?.bytes === undefined || scales?.data?.bytes === undefined)
      continue
    const { offset, bytes: length } = values.data
    if (values.type === 'int8')
      for (let at = offset; at < offset + length; at++)
        bytes.writeInt8(clamped(bytes.readInt8(at) * 2, -127, 127), at)
    else
      for (let at = offset; at < offset + length; at += 4)
        bytes.writeInt32LE(clamped(bytes.readInt32LE(at) * 2, -(2 ** 31), 2 ** 31 - 1), at)
    if (halved.has(scales.name)) continue
    halved.add(scales.name)
    for (let at = scales.data.offset; at < scales.data.offset + scales.data.bytes; at += 4)
      bytes.writeFloatLE(bytes.readFloatLE(at) / 2, at)
  }
  writeFileSync(copy, bytes)
  return copy
}

const clamped = (value: number, least: number, most: number) => Math.max(least, Math.min(most, value))

describe.skipIf(!canImitate)('R26: int8 on a processor with AVX2 and without VNNI', () => {
  it('saturates in the layers that are warned of alone, and not for a camera whose model is told to be exact', async () => {
    const dir = tempDir()
    const jobs = quantisedLayers.map(({ onnx, input }, index): Job => {
      const model = join(dir, `${index}.onnx`)
      writeFileSync(model, onnx)
      const length = input.shape.reduce((a, b) => a * b)
      const data =
        input.type === 'float32'
          ? new Uint8Array(new Float32Array(length).fill(1).buffer)
          : new Uint8Array(length).fill(input.type === 'uint8' ? 250 : 125)
      return { model, input: { ...input, data } }
    })
    const repositoryDir = tempDir()
    const config = 'parameters { key: "session.x64quantprecision" value { string_value: "1" } }'
    addModel(repositoryDir, 'saturating', { onnx: quantisedDetector() })
    addModel(repositoryDir, 'exact', { onnx: quantisedDetector(), config })
    const models = ['saturating', 'exact'].map((model) => ({ repository: repositoryDir, model }))
    const { outputs, cameras } = await runAll('avx2', jobs, models)

    quantisedLayers.forEach(({ name, concerned, expected }, index) => {
      const largest = outputs[index]!.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
      const off = Math.abs(largest / expected - 1)
      if (concerned) expect(off, name).toBeGreaterThan(0.1)
      else expect(off, name).toBeLessThan(0.01)
    })
    const [saturating, exact] = cameras.map(([best]) => best?.score ?? 0)
    expect(exact).toBeCloseTo(0.9, 1)
    expect(saturating).toBeLessThan(0.7)
  }, 240_000)

  it('is what it is elsewhere for the published models, and no head is seen where nobody is', async () => {
    const video = join(repository, 'ppe_detect_video/1/model.onnx')
    const square = join(repository, 'ppe_detect_int8/1/model.onnx')
    const float = join(repository, 'ppe_detect/1/model.onnx')
    // Part of an excavator before the sky, a crew at the dock, and the yard for the smaller model.
    const jobs: Job[] = [
      { model: video, input: picture('yard', 0, '158:88:140:78') },
      { model: video, input: picture('dock', 192) },
      { model: square, input: picture('yard', 48, '720:720:280:0', '416:416') },
    ]
    const nobody = jobs[0]!.input
    const wide = widened(video)
    const [avx2, exact, floats] = await Promise.all([
      runAll('avx2', [...jobs, { model: wide, input: nobody }]),
      runAll(
        'native',
        jobs.map((job) => ({ ...job, exact: true })),
      ),
      runAll(
        'native',
        jobs.map((job) => ({ ...job, model: float })),
      ),
    ])
    jobs.forEach((_, index) => {
      const [one, other] = [avx2.outputs[index]!, exact.outputs[index]!]
      expect(largestDifference(one, other, scoresFrom(one)), `scores of picture ${index}`).toBeLessThan(0.02)
      bestScores(floats.outputs[index]!).forEach((score, label) =>
        expect(
          Math.abs(bestScores(one)[label]! - score),
          `${labels[label]} of picture ${index}`,
        ).toBeLessThan(0.15),
      )
    })
    expect(headIn(avx2.outputs[0]!)).toBeLessThan(0.1)

    // With 8 bits the same weights see a head there and hardly a machine any more.
    expect(readWideWeights(wide).wide).toBeGreaterThan(40)
    expect(headIn(avx2.outputs.at(-1)!)).toBeGreaterThan(0.3)
  }, 480_000)
})
