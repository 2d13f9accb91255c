import { expect, it } from 'vitest'
import { checkModel } from '../../../src/cli/checks/model-check.js'
import { ensembleStep, parametersText, pictureEnsemble, redSteps } from '../../support/ensemble-text.js'
import { freeSizeDetector } from '../../support/free-size-models.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

const { letterbox, detect } = redSteps
const head = ensembleStep('detection_head', { output0: 'head', geometry: 'geometry' }, { detections: 'raw' })
const after = ensembleStep('after', { IN: 'raw' }, { OUT: 'detections' })

function repository(): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector('uint8-nhwc') })
  addModel(dir, 'after', {
    config: `backend: "js"
      input { name: "IN" data_type: TYPE_FP32 dims: [ -1, 6 ] } output { name: "OUT" data_type: TYPE_FP32 dims: [ -1, 6 ] }`,
  })
  addModel(dir, 'site', { config: pictureEnsemble({ steps: [letterbox, detect, head, after] }) })
  return dir
}

it('names the steps that cameras run by themselves', () => {
  const [finding] = checkModel(repository(), 'site', [], true)
  expect(finding).toMatchObject({ state: 'ok' })
  expect(finding?.detail).toContain('steps that run by themselves: after (js)')
})

it('refuses a step that runs code where that is not allowed, by its name', () => {
  expect(checkModel(repository(), 'site', [], false)).toEqual([
    {
      subject: 'model site',
      state: 'failed',
      detail: 'step[3] (after) runs code of the repository, which is not allowed',
      fix: expect.stringContaining('models.allowJsBackends') as string,
    },
  ])
})

it('says at what size a model of free size runs, what decided that, and what it could run at', () => {
  const dir = tempDir()
  addModel(dir, 'free', { onnx: freeSizeDetector('follows') })
  addModel(dir, 'shaped', {
    onnx: freeSizeDetector('follows'),
    config: parametersText({ 'gantry.input_size': 'rect' }),
  })
  const detail = (name: string) => {
    const shapes = { pictures: [{ widthPx: 640, heightPx: 480 }], cameras: 2 }
    return checkModel([dir], name, [], false, shapes)[0]?.detail
  }
  expect(detail('free')).toContain(
    '64x64 by imgsz of its metadata; it leaves its size free: gantry.input_size "rect" runs it at 64x48',
  )
  expect(detail('shaped')).toContain(
    '64x48 by the shape of 1 of 2 cameras (64x64 if it does not run so, which is seen at its load)',
  )
})
