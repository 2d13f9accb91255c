import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { inspectModel, listModels } from '../../src/tools/model-catalog.js'
import { pictureEnsemble, redSteps } from '../support/ensemble-text.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { qdqConv } from '../support/quantised-models.js'
import { tempDir } from '../support/temp-dir.js'

const own = join(import.meta.dirname, '../../models')

describe('model catalogue', () => {
  it('lists every model, broken ones with the reason', () => {
    const repository = tempDir()
    const onnx = redDetector('uint8-nhwc')
    addModel(repository, 'red', { onnx })
    addModel(repository, 'broken', { config: 'max_batchsize: 1' })
    addModel(repository, 'cut', { onnx: onnx.subarray(0, 100) })
    expect(listModels(repository)).toEqual([
      expect.objectContaining({
        name: 'broken',
        ok: false,
        error: expect.objectContaining({ code: 'GANTRY_MODEL_CONFIG' }) as object,
      }),
      expect.objectContaining({
        name: 'cut',
        ok: false,
        error: expect.objectContaining({ code: 'GANTRY_MODEL_INVALID' }) as object,
      }),
      { name: 'red', backend: 'onnxruntime', versions: [1], fileBytes: onnx.length, ok: true },
    ])
  })

  it('shows tensors, labels and how cameras would use the model', () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    expect(inspectModel(repository, 'red')).toMatchObject({
      backend: 'onnxruntime',
      configFrom: 'model file',
      file: {
        version: '1',
        inputs: [{ name: 'images', type: 'uint8', shape: ['batch', 64, 64, 3] }],
        labelsFrom: 'model metadata',
      },
      detector: { detector: 'red:1', head: 'yolov8', labels: ['blue', 'red'] },
    })
  })

  it('warns of int8 weights that this processor adds up wrongly, also those of a step', () => {
    const repository = tempDir()
    addModel(repository, 'wide', { onnx: qdqConv().onnx })
    addModel(repository, 'all', {
      config: `platform: "ensemble"
        input { name: "in" data_type: TYPE_FP32 dims: [ 1, 16, 8, 8 ] }
        output { name: "out" data_type: TYPE_FP32 dims: [ 1, 16, 8, 8 ] }
        ensemble_scheduling { step {
          model_name: "wide" model_version: -1
          input_map { key: "x" value: "in" } output_map { key: "z" value: "out" } } }`,
    })
    const warnings = (name: string, ...flags: string[]) =>
      inspectModel(repository, name, { architecture: 'x64', flags: new Set(flags) }).warnings
    expect(warnings('wide', 'avx2')).toEqual([expect.stringMatching(/results can be wrong.*reduce_range/)])
    expect(warnings('all', 'avx2')).toEqual([expect.stringMatching(/^wide: results can be wrong/)])
    expect(warnings('wide', 'avx2', 'avx_vnni')).toEqual([])
  })

  it('says why cameras cannot use a model that is otherwise fine', () => {
    const repository = tempDir()
    const config = 'parameters { key: "gantry.head" value { string_value: "detr" } }'
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc'), config })
    const report = inspectModel(repository, 'red')
    expect(report.detector).toBeUndefined()
    expect(report.detectorError).toMatchObject({ code: 'GANTRY_HEAD_UNKNOWN' })
  })

  it('finds models and steps in every repository; of two with one name the first counts', () => {
    const [first, second, third] = [tempDir(), tempDir(), tempDir()]
    addModel(first, 'red', { onnx: redDetector('uint8-nhwc') })
    addModel(second, 'site', {
      config: pictureEnsemble({ steps: [redSteps.letterbox, redSteps.detect, redSteps.head] }),
    })
    addModel(third, 'red', { config: 'max_batchsize: 1' })
    const all = [first, second, third]
    expect(listModels(all)).toMatchObject([
      { name: 'red', ok: true },
      { name: 'site', ok: true },
    ])
    expect(inspectModel(all, 'red').dir).toBe(join(first, 'red'))
    expect(inspectModel(all, 'site')).toMatchObject({
      dir: join(second, 'site'),
      steps: [{ model: 'letterbox' }, { model: 'red', version: '1' }, { model: 'detection_head' }],
      detector: { detector: 'red:1' },
    })
    expect(() => inspectModel(all, 'nosuch')).toThrow(`model "nosuch" is not in ${all.join(' or ')}`)
  })

  it('can be printed as JSON', () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    const report = inspectModel(repository, 'red')
    expect(JSON.parse(JSON.stringify(report))).toEqual(report)
  })

  it('finds every model of this project usable by cameras', () => {
    expect(existsSync(join(own, 'ppe'))).toBe(true)
    const models = listModels(own)
    expect(models.filter((model) => !model.ok)).toEqual([])
    for (const { name } of models) expect(inspectModel(own, name).detectorError, name).toBeUndefined()
    expect(inspectModel(own, 'ppe')).toMatchObject({
      backend: 'ensemble',
      detector: { labels: ['helmet', 'head', 'person', 'vest', 'no_vest', 'machinery', 'vehicle'] },
    })
  })
})
