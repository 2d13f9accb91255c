import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkModel } from '../../src/cli/checks/model-check.js'
import { findCameraModel } from '../../src/ensemble/camera-model.js'
import { startDetector } from '../support/detector-rig.js'
import { ensembleStep, type EnsembleText, pictureEnsemble, redSteps } from '../support/ensemble-text.js'
import { addJsModel, addModel, redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const { letterbox, detect, head } = redSteps
const whole = ensembleStep('inner', { image: 'image' }, { detections: 'detections' })

/** `site`, an ensemble around `inner`, which has letterbox, detector and head. */
function nested(site: EnsembleText, inner: EnsembleText, more?: (repository: string) => void): string {
  const repository = tempDir()
  addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
  more?.(repository)
  addModel(repository, 'inner', { config: pictureEnsemble(inner) })
  addModel(repository, 'site', { config: pictureEnsemble(site) })
  return repository
}

const inner = { steps: [letterbox, detect, head] }

async function detections(repositoryDir: string, inference = {}) {
  const settings = { instances: 1, ...inference }
  const rig = await startDetector({ repositoryDir, ensemble: 'site', inference: settings })
  return (await rig.detect(rig.frame('cam', 1, [204, 0, 0]))).result?.detections
}

describe('an ensemble inside that of the cameras', () => {
  it('is run as one with it: its letterbox, detector and head are fused', async () => {
    const repository = nested({ steps: [whole] }, inner)
    const { detector, ensemble } = findCameraModel(repository, 'site')
    expect(detector?.name).toBe('red')
    expect(ensemble?.steps.others).toEqual([])
    expect(checkModel([repository], 'site', [], false)).toMatchObject([{ state: 'ok' }])
    expect(await detections(repository)).toMatchObject([
      { label: 'red', boxPx: { x1: 22, y1: 12, x2: 42, y2: 20 } },
    ])
  })

  it('gives its boxes to the steps behind it, at whatever depth, with names that are in use outside', async () => {
    const outer = ensembleStep('middle', { image: 'image' }, { detections: 'pixels' })
    const after = ensembleStep('after', { IN: 'pixels' }, { OUT: 'detections' })
    const repository = nested({ steps: [after, outer] }, inner, (dir) => {
      addModel(dir, 'middle', { config: pictureEnsemble({ steps: [whole] }) })
      addJsModel(
        dir,
        'after',
        'input { name: "IN" data_type: TYPE_FP32 dims: [ -1, 6 ] } output { name: "OUT" data_type: TYPE_FP32 dims: [ -1, 6 ] }',
        `export default () => ({ execute: ({ inputs: { IN } }) => ({
          OUT: { shape: IN.shape, data: Float32Array.from(IN.data, (value, i) => (i % 6 === 4 ? value / 2 : value)) },
        }) })`,
      )
    })
    expect(findCameraModel(repository, 'site').ensemble?.steps.others.map(({ title }) => title)).toEqual([
      'step[0] (after)',
    ])
    expect(await detections(repository)).toMatchObject([
      { label: 'red', score: expect.closeTo(0.4, 5) as number },
    ])
  })

  it('says itself what counts as a detection, as for API clients, before the pipeline file', async () => {
    const own = { ...inner, parameters: { 'gantry.score_threshold': '0.5' } }
    const outer = { steps: [whole], parameters: { 'gantry.score_threshold': '0.9' } }
    const repository = nested(outer, own)
    expect(await detections(repository, { scoreThreshold: 0.9 })).toHaveLength(1)
    expect(await detections(nested({ steps: [whole] }, inner), { scoreThreshold: 0.9 })).toEqual([])
    expect(findCameraModel(repository, 'site').warnings).toEqual([
      'gantry.score_threshold has no effect: the detection head stands in "inner", which says it',
    ])
  })

  it('has a model for GPUs of its own', () => {
    const repository = nested(
      { steps: [whole] },
      { ...inner, parameters: { 'gantry.gpu_model': 'red_gpu' } },
      (dir) => addModel(dir, 'red_gpu', { onnx: redDetector('uint8-nhwc') }),
    )
    const { detector, gpuDetector } = findCameraModel(repository, 'site')
    expect([detector?.name, gpuDetector?.name]).toEqual(['red', 'red_gpu'])
  })

  it('is refused where it stands in a circle', () => {
    const repository = nested({ steps: [whole] }, { steps: [whole] })
    expect(() => findCameraModel(repository, 'site')).toThrow(
      'circular dependency between ensembles: inner -> inner',
    )
  })

  it('is refused by name where a step of it reads the picture before the letterbox', () => {
    const reads = ensembleStep(
      'crop',
      { frame: 'image', detections: 'detections', geometry: 'geometry' },
      { crops: 'crops' },
    )
    const repository = nested({ steps: [whole] }, { steps: [letterbox, detect, head, reads] })
    expect(() => findCameraModel(repository, 'site')).toThrow(
      'step[0] (inner), step[3] (crop) reads "image", the picture before its letterbox',
    )
  })

  it('is refused where one of the two takes batches', () => {
    const repository = nested({ steps: [whole] }, { ...inner, maxBatchSize: 4 })
    expect(() => findCameraModel(repository, 'site')).toThrow(
      'step[0] (inner) has max_batch_size 4, and the ensemble 0',
    )
  })

  it('is refused with more steps than an ensemble may have', () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    addModel(repository, 'deep0', { config: pictureEnsemble(inner) })
    const both = (below: string) => [
      ensembleStep(below, { image: 'image' }, { detections: 'detections' }),
      ensembleStep(below, { image: 'image' }, { detections: 'others' }),
    ]
    for (let depth = 1; depth <= 40; depth++)
      addModel(repository, `deep${depth}`, {
        config: pictureEnsemble({ steps: both(`deep${depth - 1}`) }),
      })
    expect(() => findCameraModel(repository, 'deep40')).toThrow('has more than 128 steps')
  })
})

it('the pipeline file says what counts as a detection also where the detector is a step by itself', async () => {
  const code = ensembleStep('code', { images: 'pixels' }, { output0: 'head' })
  const repository = tempDir()
  addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
  addJsModel(
    repository,
    'code',
    `input { name: "images" data_type: TYPE_UINT8 dims: [ 1, 64, 64, 3 ] }
     output { name: "output0" data_type: TYPE_FP32 dims: [ 1, 6, 84 ] label_filename: "labels.txt" }`,
    `export default () => ({ execute: () => {
      const data = new Float32Array(6 * 84)
      for (const [row, value] of [30, 30, 20, 8, 0, 0.8].entries()) data[row * 84] = value
      return { output0: { shape: [1, 6, 84], data } }
    } })`,
  )
  writeFileSync(join(repository, 'code', 'labels.txt'), 'blue\nred\n')
  addModel(repository, 'site', { config: pictureEnsemble({ steps: [letterbox, code, head] }) })
  expect(await detections(repository)).toHaveLength(1)
  expect(await detections(repository, { scoreThreshold: 0.9 })).toEqual([])
})
