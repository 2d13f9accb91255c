import { describe, expect, it } from 'vitest'
import { findCameraModel } from '../../src/ensemble/camera-model.js'
import { ensembleStep, pictureEnsemble, redSteps } from '../support/ensemble-text.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const step = ensembleStep
const { letterbox, detect, head } = redSteps

function find(steps: readonly string[], extra?: (repository: string) => void) {
  const repository = tempDir()
  addModel(repository, 'red', { onnx: redDetector('uint8-nhwc'), version: 3 })
  extra?.(repository)
  addModel(repository, 'site', { config: pictureEnsemble({ steps }) })
  return findCameraModel(repository, 'site')
}

describe('ensembles of cameras', () => {
  it('finds the detector between letterbox and detection head, in whatever order the steps are written', () => {
    expect(find([letterbox, detect, head])).toMatchObject({
      name: 'site',
      version: '1',
      detector: { name: 'red', version: '3' },
    })
    expect(find([head, detect, letterbox]).detector?.name).toBe('red')
  })

  it('takes a step of another name whose backend is built in', () => {
    const own = step('my_head', { output0: 'head', geometry: 'geometry' }, { detections: 'detections' })
    const model = find([letterbox, detect, own], (repository) =>
      addModel(repository, 'my_head', { config: 'backend: "detection_head"' }),
    )
    expect(model.detector?.name).toBe('red')
  })

  it('takes a plain detector as if the other steps were there', () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc'), version: 3 })
    expect(findCameraModel(repository, 'red')).toMatchObject({ name: 'red', version: '3' })
  })

  it.each([
    ['an unknown model', [letterbox, step('blue', {}, {}), head], 'step[1] (blue) is not in the repository'],
    [
      'an input the model lacks',
      [letterbox, step('red', { image: 'pixels' }, { output0: 'head' }), head],
      'step[1] (red) has no input "image"',
    ],
    [
      'an output the model lacks',
      [letterbox, step('red', { images: 'pixels' }, { boxes: 'head' }), head],
      'step[1] (red) has no output "boxes"',
    ],
    [
      'a tensor nobody writes',
      [letterbox, step('red', { images: 'pixel' }, { output0: 'head' }), head],
      'step[1] (red) reads "pixel", which nothing writes',
    ],
    [
      'an input left open',
      [letterbox, detect, step('detection_head', { output0: 'head' }, { detections: 'detections' })],
      'step[2] (detection_head) is not given its input "geometry"',
    ],
    [
      'a tensor written twice',
      [letterbox, step('red', { images: 'pixels' }, { output0: 'geometry' }), head],
      '"geometry" is written by step[1] (red) and is already an output of step[0] (letterbox)',
    ],
    ['no writer of its output', [letterbox, detect], 'no step writes the output "detections"'],
    ['no steps', [], 'it has no ensemble_scheduling steps'],
    [
      'no detector',
      [
        letterbox,
        step('detection_head', { a: 'pixels', geometry: 'geometry' }, { detections: 'detections' }),
      ],
      'step[1] (detection_head) reads nothing that a model gives',
    ],
    [
      'a detector that skips the letterbox',
      [letterbox, step('red', { images: 'image' }, { output0: 'head' }), head],
      'step[1] (red) reads "image", the picture before its letterbox',
    ],
  ])('refuses %s, naming step and tensor', (_, steps, problem) => {
    expect(() => find(steps)).toThrow(problem)
  })

  it('refuses to run cameras on a step alone', () => {
    const repository = tempDir()
    addModel(repository, 'boxes', { config: 'backend: "detection_head"' })
    expect(() => findCameraModel(repository, 'boxes')).toThrow('cannot analyse cameras by itself')
  })
})
