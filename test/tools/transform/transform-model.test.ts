import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { planDetector } from '../../../src/detector/detector-plan.js'
import { findCameraModel } from '../../../src/ensemble/camera-model.js'
import { openOnnxModel } from '../../../src/repository/onnx-model.js'
import { readModel } from '../../../src/repository/model-definition.js'
import { modelOfFile, onnxModelNamed } from '../../../src/tools/model-file.js'
import {
  defaultTransform,
  transformModel,
  type TransformRequest,
} from '../../../src/tools/transform/transform-model.js'
import { parseStep } from '../../../src/tools/transform/transform-step.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { demoPictures, redPictures } from '../../support/test-pictures.js'
import { tempDir } from '../../support/temp-dir.js'
import { modelFile } from '../../support/transformed.js'

const models = fileURLToPath(new URL('../../../models', import.meta.url))
const wild = fileURLToPath(new URL('../../../../shared/models-in-the-wild', import.meta.url))

let pictures: string
beforeAll(async () => {
  pictures = await demoPictures(4)
}, 120_000)
afterAll(() => rmSync(pictures, { recursive: true }))

function request(
  repository: string,
  words: readonly string[],
  more: Partial<TransformRequest> = {},
): TransformRequest {
  return {
    ...defaultTransform,
    steps: words.map(parseStep),
    target: { kind: 'entry', repository, name: 'result' },
    frames: [pictures],
    proofPictures: 4,
    // None: steps of our own go on without.
    env: { ...process.env, XDG_CACHE_HOME: tempDir() },
    quiet: true,
    say: () => undefined,
    ...more,
  }
}

describe('the shipped detector with NMS inside', () => {
  it('is an entry that cameras use, with its labels, proved on pictures', async () => {
    const repository = tempDir()
    const model = onnxModelNamed(models, 'ppe_detect', 'transformed')
    const report = await transformModel(model, request(repository, ['size=640x352', 'nms']))
    expect(report.steps.map(({ step }) => step)).toEqual(['size=640x352', 'nms'])
    const proof = report.steps[1]!.proof
    expect(proof).toMatchObject({ by: 'detections that differ', measured: 0 })
    expect(proof.detections!.original).toBeGreaterThan(3)
    expect(report.checker).toBeUndefined()
    expect(readdirSync(repository)).toEqual(['result'])

    const { detector } = findCameraModel(repository, 'result')
    const plan = planDetector(detector!)
    expect(plan.input).toMatchObject({ layout: 'uint8-nhwc', size: { widthPx: 640, heightPx: 352 } })
    expect(plan.head).toMatchObject({ kind: 'end-to-end', output: 'detections' })
    expect(plan.labels).toEqual(planDetector(model).labels)
    expect(detector!.config).toMatchObject({
      max_batch_size: 16,
      input: [{ data_type: 'TYPE_UINT8', format: 'FORMAT_NHWC', dims: [352, 640, 3] }],
      output: [{ dims: [100, 6], label_filename: 'labels.txt' }],
      parameters: { 'gantry.exclusive_labels': { string_value: 'helmet, head; vest, no_vest' } },
    })
  })
})

describe('a batch of fixed size', () => {
  const sizes = ['batch=3', 'batch=1', 'batch=free', 'batch=2'] as const

  it('is proved on pictures, whatever it was before', async () => {
    const dir = tempDir()
    addModel(dir, 'red', {
      onnx: redDetector('uint8-nhwc'),
      config: 'max_batch_size: 4',
      labels: 'blue\nred',
    })
    const red = openOnnxModel(readModel(dir, 'red'))
    const { steps } = await transformModel(red, request(dir, sizes, { frames: [await redPictures()] }))
    expect(steps.map(({ proof }) => proof.measured)).toEqual([0, 0, 0, 0])
    expect(steps[0]!.proof.on).toMatch(/, alone and 3 at once$/)
  })

  it('is proved on random numbers, where the model takes no pictures', async () => {
    const dir = tempDir()
    const path = modelFile(
      buildOnnx({
        inputs: [{ name: 'in', type: 'float32', shape: [1, 5] }],
        outputs: [{ name: 'out', type: 'float32', shape: [1, 5] }],
        nodes: [{ op: 'Sigmoid', inputs: ['in'], outputs: ['out'] }],
      }),
    )
    const { steps } = await transformModel(modelOfFile(path), request(dir, sizes))
    expect(steps.map(({ proof }) => proof.measured)).toEqual([0, 0, 0, 0])
    expect(steps.map(({ proof }) => proof.outputs.length)).toEqual([1, 1, 1, 1])
  })
})

describe('R54: what ends early', () => {
  const repository = () => {
    const dir = tempDir()
    addModel(dir, 'red', {
      onnx: redDetector('uint8-nhwc'),
      config: 'max_batch_size: 4',
      labels: 'blue\nred',
    })
    return dir
  }
  const red = (dir: string) => openOnnxModel(readModel(dir, 'red'))

  it('leaves nothing: a step that cannot be done', async () => {
    const dir = repository()
    await expect(
      transformModel(red(dir), request(dir, ['nms', 'fold'], { frames: [await redPictures()] })),
    ).rejects.toThrow('takes bytes already')
    expect(readdirSync(dir)).toEqual(['red'])
  })

  it('leaves nothing: a result that says something else', async () => {
    const dir = repository()
    const model = onnxModelNamed(models, 'ppe_detect', 'transformed')
    await expect(transformModel(model, request(dir, ['size=160x96'], { tolerance: 0 }))).rejects.toThrow(
      /size=160x96 changes what the model says: detections that differ 0?\.\d+ on 4 pictures/,
    )
    expect(readdirSync(dir)).toEqual(['red'])
  })

  it('leaves nothing: Ctrl-C', async () => {
    const dir = repository()
    const stop = new AbortController()
    const say = (line: string) => void (line === 'nms ...' && stop.abort())
    const work = transformModel(
      red(dir),
      request(dir, ['batch=free', 'nms', 'batch=free'], {
        say,
        signal: stop.signal,
        frames: [await redPictures()],
      }),
    )
    await expect(work).rejects.toMatchObject({ name: 'AbortError' })
    expect(readdirSync(dir)).toEqual(['red'])
  })

  it('overwrites nothing, and says what int8 lacks before it begins', async () => {
    const dir = repository()
    const taken = { kind: 'entry', repository: dir, name: 'red' } as const
    await expect(transformModel(red(dir), request(dir, ['nms'], { target: taken }))).rejects.toThrow(
      'is there already',
    )
    await expect(transformModel(red(dir), request(dir, ['int8'], { frames: [] }))).rejects.toThrow(
      'int8 needs pictures to calibrate on',
    )
    const gone = request(dir, ['nms'], { frames: [join(dir, 'nowhere')] })
    await expect(transformModel(red(dir), gone)).rejects.toThrow('nowhere is not there')
    const bare = request(dir, ['float16'], { env: { PATH: tempDir(), XDG_CACHE_HOME: tempDir() } })
    await expect(transformModel(red(dir), bare)).rejects.toThrow(
      'there is no Python, which int8, float16 and simplify need',
    )
    expect(readdirSync(dir)).toEqual(['red'])
  })
})

describe.skipIf(!existsSync(wild))('models made by others', () => {
  const yolox = join(wild, 'yolox-nano-coco-416.onnx')
  const yolov8 = join(wild, 'yolov8n-coco-int8.onnx')

  it('YOLOX: bytes in, boxes out, any batch', async () => {
    const dir = tempDir()
    const report = await transformModel(
      modelOfFile(yolox),
      request(dir, ['fold', 'batch=2', 'batch=free', 'nms']),
    )
    expect(report.steps[0]!.proof.measured).toBeLessThan(1e-3)
    expect(report.steps[3]!.proof.measured).toBe(0)
    const plan = planDetector(findCameraModel(dir, 'result').detector!)
    expect(plan.input).toMatchObject({ layout: 'uint8-nhwc', channels: 'rgb', align: 'top-left' })
    expect(readFileSync(join(dir, 'result', 'config.pbtxt'), 'utf8')).toContain('max_batch_size: 16')
  }, 120_000)

  it('YOLOv8, quantised: another size with its grid made anew, and no batch, as it has one scale for all', async () => {
    const dir = tempDir()
    const report = await transformModel(modelOfFile(yolov8), request(dir, ['size=640x384', 'nms']))
    expect(report.steps[1]!.proof.measured).toBe(0)
    await expect(
      transformModel(
        modelOfFile(yolov8),
        request(dir, ['batch=free'], { target: { kind: 'file', path: join(dir, 'a.onnx') } }),
      ),
    ).rejects.toThrow(/of a picture in a batch differs from that of the picture alone/)
    expect(readdirSync(dir)).toEqual(['result'])
  }, 120_000)
})
