import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { onPath } from '../../../scripts/lib/system-tools.mjs'
import { readWideWeights } from '../../../src/backends/onnxruntime/wide-weights.js'
import { readOnnxFile } from '../../../src/repository/onnx-file.js'
import { pythonEnvironment } from '../../../src/tools/python/python-environment.js'
import { onnxModelNamed } from '../../../src/tools/model-file.js'
import { demoClips } from '../../../src/tools/transform/frames.js'
import { defaultTransform, transformModel } from '../../../src/tools/transform/transform-model.js'
import { parseStep } from '../../../src/tools/transform/transform-step.js'
import { tempDir } from '../../support/temp-dir.js'

const models = fileURLToPath(new URL('../../../models', import.meta.url))
const model = () => onnxModelNamed(models, 'ppe_detect', 'transformed')

const usual = {
  ...defaultTransform,
  frames: demoClips(),
  calibrationPictures: 8,
  proofPictures: 4,
  env: process.env,
  quiet: true,
  say: () => undefined,
}

describe.skipIf(!onPath('python3'))('by libraries, in the environment that is made on first use', () => {
  beforeAll(async () => {
    await pythonEnvironment({ env: process.env, quiet: true, say: () => undefined })
  }, 600_000)

  it('quantises the shipped detector with seven bits, leaves out what is named, and passes the checker', async () => {
    const path = join(tempDir(), 'int8.onnx')
    const layer = '/backbone/context/blocks.0/depthwise/Conv'
    const report = await transformModel(model(), {
      ...usual,
      steps: [parseStep('int8')],
      target: { kind: 'file', path },
      quantise: { ...usual.quantise, sensitivity: 0, exclude: [layer] },
    })
    expect(report.checker).toBe('passed')
    expect(report.steps[0]!.quantised).toMatchObject({ layers: 94, excluded: [layer], pictures: 8 })
    expect(report.steps[0]!.quantised!.float32Layers).toHaveLength(7)
    expect(report.steps[0]!.proof.measured).toBeLessThan(0.15)
    const { layers, wide } = readWideWeights(path)
    expect(layers).toBeGreaterThan(70)
    expect(wide).toBe(0)
    const target = { kind: 'file', path: join(tempDir(), 'again.onnx') } as const
    const quantised = { ...model(), path }
    await expect(
      transformModel(quantised, { ...usual, steps: [parseStep('float16')], target }),
    ).rejects.toThrow(/the model is quantised already: node ".+" is a \w+Linear/)
  }, 240_000)

  it('simplifies, and makes float16 of it, with outputs as they were', async () => {
    const dir = tempDir()
    const report = await transformModel(model(), {
      ...usual,
      steps: ['simplify', 'float16'].map(parseStep),
      target: { kind: 'entry', repository: dir, name: 'half' },
    })
    expect(report.checker).toBe('passed')
    expect(readdirSync(dir)).toEqual(['half'])
    const file = readOnnxFile(join(dir, 'half', '1', 'model.onnx'))
    expect(file.fileBytes).toBeLessThan(0.6 * model().onnx.fileBytes)
    expect(file.outputs[0]!.type).toBe('float32')
  }, 240_000)
})
