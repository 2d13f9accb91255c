import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readModel } from '../../../src/repository/model-definition.js'
import { openOnnxModel } from '../../../src/repository/onnx-model.js'
import { readGraphParts } from '../../../src/tools/split/graph-parts.js'
import { splitModel } from '../../../src/tools/split/split-model.js'
import { writeGraph } from '../../../src/tools/split/write-graph.js'
import type { OpenedModel } from '../../../src/runtime/backend.js'
import { onnxRuntimeBackend } from '../../../src/backends/onnxruntime/onnxruntime-backend.js'
import { createEnsembleModel } from '../../../src/ensemble/create-ensemble-model.js'
import type { LoadedModel } from '../../../src/runtime/loaded-model.js'
import {
  contextOf,
  fp32,
  requestOf,
  scheduled,
  scheduledModel,
  valuesOf,
} from '../../support/direct-model.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'

const models = fileURLToPath(new URL('../../../models', import.meta.url))
const options = { gpus: [], runs: 2, tolerance: 1e-3 }

/**
 * Holds a run of every stage until all of them have one: the third of the first stage, the second of the second, the first of the
 * third. Stages that did not work side by side would wait for ever.
 */
class Together {
  readonly #held = new Set<string>()
  readonly #runs = new Map<string, number>()
  #open: () => void = () => undefined
  readonly #all = new Promise<void>((resolve) => (this.#open = resolve))

  constructor(readonly stages: readonly string[]) {}

  async run(stage: string): Promise<void> {
    const run = (this.#runs.get(stage) ?? 0) + 1
    this.#runs.set(stage, run)
    if (run !== this.stages.length - this.stages.indexOf(stage)) return
    this.#held.add(stage)
    if (this.#held.size === this.stages.length) this.#open()
    await this.#all
  }

  /** Without batches, so that every request is a run. */
  watching(name: string, opened: OpenedModel): OpenedModel {
    const { dynamic_batching: _, ...config } = opened.config
    return {
      config,
      platform: opened.platform,
      inputs: opened.inputs,
      outputs: opened.outputs,
      close: () => opened.close(),
      start: async (index) => {
        const instance = await opened.start(index)
        return {
          close: () => instance.close(),
          execute: async (batch) => {
            await this.run(name)
            return instance.execute(batch)
          },
        }
      },
    }
  }
}

async function stageModel(repository: string, name: string, together?: Together): Promise<LoadedModel> {
  const { config } = readModel(repository, name)
  const backend = onnxRuntimeBackend({ providers: ['cpu'], devices: [0], intraOpThreads: 1 })
  const context = contextOf(name, config, join(repository, name, '1'))
  const opened = await backend.open(context)
  const model = await scheduled(together?.watching(name, opened) ?? opened, context)
  onTestFinished(() => model.stop(5_000))
  return model
}

async function ensembleOf(repository: string, name: string, together?: Together) {
  const { config, folder } = readModel(repository, name)
  const stages = new Map<string, LoadedModel>()
  for (const { model_name } of config.ensemble_scheduling?.step ?? [])
    stages.set(model_name, await stageModel(repository, model_name, together))
  return createEnsembleModel(
    { name, version: '1', config, versionDir: join(folder.dir, '1'), labels: new Map() },
    { find: (stage) => stages.get(stage), serve: scheduled, log: silentLog() },
  )
}

const picture = (seed: number, size = 416) => {
  const data = Uint8Array.from(
    { length: size * size * 3 },
    (_, at) => (at * 31 + seed * 97 + (at >> 7)) & 255,
  )
  return requestOf([{ name: 'images', datatype: 'UINT8', shape: [1, size, size, 3], data }])
}

describe('a detector cut into stages', () => {
  it('answers through the ensemble what the whole model answers, with all stages busy at once', async () => {
    const repository = tempDir()
    const report = await splitModel(openOnnxModel(readModel(models, 'ppe_detect')), {
      ...options,
      stages: 3,
      outDir: repository,
    })
    expect(report.comparison.largestRelative).toBeLessThan(1e-4)
    expect(report.stages.map(({ name }) => name)).toEqual([1, 2, 3].map((n) => `ppe_detect_stage${n}`))
    for (const { share } of report.stages) expect(share).toBeGreaterThan(0.1)

    const ensemble = await ensembleOf(repository, 'ppe_detect_split')
    const whole = await scheduledModel(models, 'ppe_detect')
    expect(ensemble.inputs).toEqual(whole.inputs)
    expect(ensemble.outputs).toEqual(whole.outputs)

    const [one] = await ensemble.infer(picture(1))
    const [expected] = await whole.infer(picture(1))
    expect(one?.shape).toEqual(expected?.shape)
    const found = valuesOf(one)
    const largest = valuesOf(expected).reduce(
      (most, value, at) => Math.max(most, Math.abs(value - (found[at] ?? NaN))),
      0,
    )
    expect(largest).toBeLessThan(1e-2)

    const together = new Together(report.stages.map(({ name }) => name))
    const pipelined = await ensembleOf(repository, 'ppe_detect_split', together)
    const answers = await Promise.all([1, 2, 3, 4].map((seed) => pipelined.infer(picture(seed))))
    expect(answers).toHaveLength(4)
  })

  it('goes behind a letterbox and before a detection head like the whole one', async () => {
    const repository = tempDir()
    addModel(repository, 'red', {
      onnx: redDetector('uint8-nhwc'),
      config: 'max_batch_size: 4',
      labels: 'blue\nred',
    })
    await splitModel(openOnnxModel(readModel(repository, 'red')), {
      ...options,
      stages: 2,
      outDir: repository,
    })
    const split = await ensembleOf(repository, 'red_split')
    const { config } = readModel(models, 'ppe')
    const site = await createEnsembleModel(
      {
        name: 'site',
        version: '1',
        config: {
          ...config,
          // It would take the place of a model file, and here is an ensemble.
          parameters: {},
          ensemble_scheduling: {
            step: (config.ensemble_scheduling?.step ?? []).map((step) =>
              step.model_name === 'ppe_detect_video' ? { ...step, model_name: 'red_split' } : step,
            ),
          },
        },
        versionDir: '',
        labels: new Map(),
      },
      { find: (name) => (name === 'red_split' ? split : undefined), serve: scheduled, log: silentLog() },
    )
    onTestFinished(() => site.stop(5_000))
    const data = new Uint8Array(64 * 64 * 3).fill(255)
    const [detections] = await site.infer(
      requestOf([{ name: 'image', datatype: 'UINT8', shape: [64, 64, 3], data }]),
    )
    expect(valuesOf(detections)).toEqual([22, 12, 42, 20, 1, 1])
  })

  it('keeps sizes open that the model leaves open', async () => {
    const repository = tempDir()
    const open = (name: string) => ({ name, type: 'float32', shape: ['batch', 'height', 'width'] }) as const
    const relu = (from: string, to: string) => ({ op: 'Relu', inputs: [from], outputs: [to] })
    const onnx = buildOnnx({
      inputs: [open('in')],
      outputs: [open('out')],
      nodes: [
        relu('in', 'a'),
        { op: 'Add', inputs: ['a', 'a'], outputs: ['b'] },
        relu('b', 'c'),
        relu('c', 'out'),
      ],
    })
    addModel(repository, 'open', { onnx })
    const model = openOnnxModel(readModel(repository, 'open'))
    await splitModel(model, { ...options, stages: 2, outDir: repository })
    expect(readModel(repository, 'open_stage2').config.input[0]?.dims).toEqual([-1, -1])
    const split = await ensembleOf(repository, 'open_split')
    for (const [height, width] of [
      [1, 3],
      [64, 64],
      [70, 5],
    ] as const) {
      const values = Array.from({ length: height * width }, (_, at) => at % 7)
      const [answer] = await split.infer(requestOf([fp32('in', [1, height, width], values)]))
      expect(answer?.shape).toEqual([1, height, width])
      expect(valuesOf(answer)).toEqual(values.map((value) => 2 * value))
    }
  })

  it('leaves nothing behind when it fails, and overwrites nothing', async () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    const model = openOnnxModel(readModel(repository, 'red'))
    await expect(splitModel(model, { ...options, stages: 50, outDir: repository })).rejects.toThrow(
      'cannot be cut into 50 stages',
    )
    expect(readdirSync(repository)).toEqual(['red'])
    expect(readdirSync(join(repository, 'red', '1'))).toEqual(['model.onnx'])
    await splitModel(model, { ...options, stages: 2, outDir: repository, gpus: [0, 1] })
    expect(readModel(repository, 'red_stage2').config.instance_group).toMatchObject([
      { kind: 'KIND_GPU', gpus: [1] },
    ])
    await expect(splitModel(model, { ...options, stages: 2, outDir: repository })).rejects.toThrow(
      'is there already',
    )
  })
})

it('writes a model back as it was read', () => {
  const parts = readGraphParts(join(models, 'ppe_detect', '1', 'model.onnx'))
  const again = (given: typeof parts) =>
    writeGraph(given, given.nodes, [...given.inputs.values()], [...given.outputs.values()])
  const copy = join(tempDir(), 'copy.onnx')
  writeFileSync(copy, again(parts))
  const read = readGraphParts(copy)
  expect(read.nodes.map(({ name }) => name)).toEqual(parts.nodes.map(({ name }) => name))
  expect([...read.weights.keys()]).toEqual([...parts.weights.keys()])
  expect(Buffer.compare(again(read), readFileSync(copy))).toBe(0)
})

const wild = fileURLToPath(
  new URL('../../../../shared/models-in-the-wild/yolox-nano-coco-416.onnx', import.meta.url),
)

it.skipIf(!existsSync(wild))(
  'cuts a real YOLOX-Nano into four stages that answer as the whole one',
  async () => {
    const repository = tempDir()
    addModel(repository, 'wild', { onnx: readFileSync(wild) })
    const model = openOnnxModel(readModel(repository, 'wild'))
    const report = await splitModel(model, { ...options, stages: 4, outDir: repository })
    expect(report.comparison.largestRelative).toBeLessThan(1e-3)
    expect(Math.max(...report.stages.map(({ share }) => share))).toBeLessThan(0.5)
  },
)
