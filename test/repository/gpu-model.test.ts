import { mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { checkRepository } from '../../src/cli/checks/repository-check.js'
import { pipelineSchema } from '../../src/config/pipeline.js'
import { findCameraModel } from '../../src/ensemble/camera-model.js'
import type { ServingError } from '../../src/tensors/serving-error.js'
import { fp32, requestOf } from '../support/direct-model.js'
import { startDetector } from '../support/detector-rig.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { gpuWorkers, recordShapes } from '../support/simulated-gpus.js'
import { serveRepository } from '../support/real-repository.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const shipped = fileURLToPath(new URL('../../models', import.meta.url))
const parameter = (key: string, value: string) =>
  `parameters { key: "gantry.${key}" value { string_value: "${value}" } }`
const onGpus = 'max_batch_size: 4 instance_group { kind: KIND_GPU count: 1 }'

/** The shipped ensemble with a model of its own for CPUs and one for GPUs, whose file is that of a third. */
function site(gpuModel = 'float', floatConfig = `${onGpus} ${parameter('files_of', 'weights')}`): string {
  const dir = tempDir()
  const ensemble = readFileSync(join(shipped, 'ppe/config.pbtxt'), 'utf8')
    .replace('"ppe"', '"site"')
    .replaceAll('ppe_detect_video_fp32', gpuModel)
    .replaceAll('ppe_detect_video', 'own')
  addModel(dir, 'site', { config: ensemble })
  addModel(dir, 'own', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
  addModel(dir, 'weights', { onnx: redDetector('float32-nchw'), config: 'max_batch_size: 4' })
  addModel(dir, 'float', { config: floatConfig })
  return dir
}

describe('an ensemble with a model for GPUs', () => {
  it.each([
    [['cuda', 'cpu'], 'float', '3x64x64'],
    [['cpu', 'cuda'], 'own', undefined],
    [['cpu'], 'own', undefined],
    [['cuda'], 'float', '3x64x64'],
  ] as const)(
    'with providers %j runs %s for cameras, under the name of the ensemble',
    async (providers, name, shape) => {
      const runs = recordShapes()
      const rig = await startDetector({
        repositoryDir: site(),
        ensemble: 'site',
        inference: { providers: [...providers], instances: 2, maxBatchSize: 4 },
        workerEntry: gpuWorkers.detector,
      })
      expect(rig.detector.info).toMatchObject({
        model: { name: 'site', version: '1' },
        detector: { name, version: '1' },
        labels: ['blue', 'red'],
        instances: 2,
      })
      const { result } = await rig.detect(rig.frame('cam', 1, [204, 0, 0]))
      expect(result?.detections).toMatchObject([{ label: 'red', score: expect.closeTo(0.8, 3) as number }])
      await until('all sizes are warm', () => (rig.detector.info.sizes?.toCome ?? []).length === 0)
      const onGpu = shape === undefined ? [] : [`images 1x${shape}`, `images 4x${shape}`]
      expect(new Set(runs().map(({ shapes }) => shapes))).toEqual(new Set(onGpu))
    },
  )

  it('runs its own where no GPU can be had, and says why', async () => {
    const rig = await startDetector({
      repositoryDir: site(),
      ensemble: 'site',
      inference: { providers: ['cuda', 'cpu'], instances: 1 },
    })
    expect(rig.detector.info).toMatchObject({
      detector: { name: 'own' },
      provider: 'cpu',
      providerNotes: [expect.stringContaining('cuda: libonnxruntime_providers_cuda.so is not installed')],
      providerFailures: [],
    })
  })

  it('chooses alike for clients', async () => {
    const picture = { name: 'image', datatype: 'UINT8', shape: [64, 64, 3], data: red() } as const
    const counts: number[][] = []
    for (const onGpu of [true, false]) {
      const server = await serveRepository(site(), { onGpu })
      const { outputs } = await server.infer(requestOf([picture], { model: 'site' }))
      const [, , , , score = 0, label] = [...new Float32Array(outputs[0]!.data.slice().buffer)]
      expect([Math.round(score * 100) / 100, label]).toEqual([0.8, 1])
      const ran = (name: string) =>
        server.statistics(name, '').reduce((sum, one) => sum + one.inferenceCount, 0)
      counts.push([ran('own'), onGpu ? ran('float') : 0])
      // Where there is no GPU it takes no memory.
      expect(server.index(true).map(({ name }) => name)).toEqual(
        onGpu ? ['float', 'own', 'site', 'weights'] : ['own', 'site', 'weights'],
      )
      expect(server.ready()).toBe(true)
    }
    expect(counts).toEqual([
      [0, 1],
      [1, 0],
    ])
  })

  it('is shipped with float32 weights that are in the repository once', () => {
    const { detector, gpuDetector } = findCameraModel(shipped, 'ppe')
    expect(detector?.name).toBe('ppe_detect_video')
    expect(gpuDetector).toMatchObject({
      name: 'ppe_detect_video_fp32',
      path: join(shipped, 'ppe_detect/1/model.onnx'),
      labels: detector?.labels,
    })
  })
})

const labelled = (labels: string) => {
  const dir = site('other')
  addModel(dir, 'other', { onnx: redDetector('float32-nchw'), labels, config: onGpus })
  return dir
}
const withSecondModel = () => {
  const dir = site()
  const more = `ensemble_scheduling { step [
    { model_name: "letterbox" input_map { key: "image" value: "image" } output_map { key: "pixels" value: "p" } output_map { key: "geometry" value: "g" } },
    { model_name: "own" input_map { key: "images" value: "p" } output_map { key: "output0" value: "a" } },
    { model_name: "own" input_map { key: "images" value: "p" } output_map { key: "output0" value: "b" } },
    { model_name: "detection_head" input_map { key: "output0" value: "a" } input_map { key: "geometry" value: "g" } output_map { key: "detections" value: "detections" } },
    { model_name: "detection_head" input_map { key: "output0" value: "b" } input_map { key: "geometry" value: "g" } output_map { key: "detections" value: "others" } } ] }`
  const config = readFileSync(join(dir, 'site/config.pbtxt'), 'utf8').replace(
    /ensemble_scheduling \{[\s\S]*?\n\}\n/,
    `${more}\n`,
  )
  addModel(dir, 'site', { config })
  return dir
}
const borrowing = (value: string, more: (dir: string) => void = () => undefined) => {
  const dir = site('float', `${onGpus} ${parameter('files_of', value)}`)
  more(dir)
  return dir
}

describe('a name that cannot be meant', () => {
  it.each([
    ['a model that is not there', () => site('flaot'), /flaot/],
    ['a path', () => site('../site/float'), /\.\.\/site\/float/],
    [
      'other labels',
      () => labelled('red\nblue\n'),
      /other labels: "own" has blue, red; "other" has red, blue/,
    ],
    [
      'one model for two',
      withSecondModel,
      /gantry\.gpu_model is "float", but 2 steps run a model file|cameras need exactly one/,
    ],
    ['files of nobody', () => borrowing('wieghts'), /gantry\.files_of is "wieghts", which is no other model/],
    ['files of itself', () => borrowing('float'), /gantry\.files_of is "float", which is no other model/],
    [
      'files outside',
      () => borrowing('../weights'),
      /gantry\.files_of is "\.\.\/weights", which is no other model/,
    ],
    [
      'files of one that has none',
      () =>
        borrowing('between', (dir) => addModel(dir, 'between', { config: parameter('files_of', 'weights') })),
      /gantry\.files_of is "between", which has no files of its own/,
    ],
    [
      'files twice',
      () => borrowing('weights', (dir) => mkdirSync(join(dir, 'float/1'))),
      /but the model has version folders of its own/,
    ],
  ])('is refused for cameras and for clients: %s', async (what, repository, problem) => {
    const dir = repository()
    expect(() => findCameraModel(dir, 'site')).toThrow(problem)
    const server = await serveRepository(dir, { onGpu: true })
    const failed = server.index(false).filter(({ state }) => state === 'UNAVAILABLE')
    // One that cannot be loaded is not used: the ensemble then runs its own.
    const faulty = /files/.test(what) ? 'float' : 'site'
    expect(failed.filter(({ name }) => name === faulty)).toHaveLength(1)
  })

  it('is refused on a model that is no ensemble, and borrowing on an ensemble', async () => {
    const dir = site()
    addModel(dir, 'own', { config: `max_batch_size: 4 ${parameter('gpu_model', 'float')}` })
    expect(() => findCameraModel(dir, 'own')).toThrow(/gantry\.gpu_model: it belongs to the ensemble/)
    addModel(dir, 'site', {
      config: `${readFileSync(join(dir, 'site/config.pbtxt'), 'utf8')} ${parameter('files_of', 'own')}`,
    })
    expect(() => findCameraModel(dir, 'site')).toThrow(/gantry\.files_of: only backend onnxruntime/)
  })
})

describe('a model with the files of another', () => {
  it('serves clients by itself', async () => {
    const server = await serveRepository(site(), { onGpu: true })
    const images = fp32('images', [1, 3, 64, 64], Array<number>(3 * 64 * 64).fill(0.5))
    const { outputs } = await server.infer(requestOf([images], { model: 'float' }))
    expect(outputs[0]).toMatchObject({ name: 'output0', shape: [1, 6, 84] })
    await expect(server.infer(requestOf([images], { model: 'nobody' }))).rejects.toMatchObject({
      status: 'INVALID_ARG',
    } satisfies Partial<ServingError>)
  })
})

function red(): Uint8Array {
  const pixels = new Uint8Array(64 * 64 * 3)
  for (let at = 0; at < pixels.length; at += 3) pixels[at] = 204
  return pixels
}

describe('gantry check', () => {
  const pipelineOf = (dir: string | readonly string[], providers: readonly string[]) =>
    pipelineSchema.parse({
      apiVersion: 'gantry/v1',
      name: 'check',
      ensemble: 'site',
      models: { repository: dir },
      inference: { providers },
    })

  it('finds a model with the files of another where they are', async () => {
    const dir = site('float', parameter('files_of', 'weights'))
    // By a provider that is built in: the model is to be loaded.
    expect(await checkRepository(pipelineOf(dir, ['webgpu', 'cpu']), [])).toEqual([
      { subject: 'served models', state: 'ok', detail: '4 of 4 can be loaded: float own site weights' },
    ])
  })

  it('finds it in another repository, as cameras do', async () => {
    const [dir, other] = [site('float', parameter('files_of', 'weights')), tempDir()]
    for (const name of ['float', 'weights']) renameSync(join(dir, name), join(other, name))
    expect(findCameraModel([dir, other], 'site').gpuDetector?.name).toBe('float')
    expect(await checkRepository(pipelineOf([dir, other], ['webgpu', 'cpu']), [])).toEqual([
      { subject: 'served models', state: 'ok', detail: '4 of 4 can be loaded: float own site weights' },
    ])
    expect(() => findCameraModel(dir, 'site')).toThrow(
      'is "float", which is no other model of this repository',
    )
  })

  it('leaves out a model for GPUs where there is none', async () => {
    expect(await checkRepository(pipelineOf(site(), ['cuda', 'cpu']), [])).toEqual([
      { subject: 'served models', state: 'ok', detail: '3 of 3 can be loaded: own site weights' },
    ])
  })
})
