import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findCameraModel } from '../../src/ensemble/camera-model.js'
import { startDetector } from '../support/detector-rig.js'
import { ensembleStep, type EnsembleText, pictureEnsemble, redSteps } from '../support/ensemble-text.js'
import { addJsModel, addModel, detectorOnnx, namesMetadata, redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const { letterbox, detect, head } = redSteps
const steps = [letterbox, detect, head]

/** A repository with the detector `red`, and the ensemble `site`. */
function siteRepository(site: EnsembleText, more?: (repository: string) => void): string {
  const repository = tempDir()
  addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
  more?.(repository)
  addModel(repository, 'site', { config: pictureEnsemble(site) })
  return repository
}

/** Two boxes of class `red`, far from each other, whatever it sees. */
function twoBoxes(): Uint8Array {
  const anchors = 84
  const box = (point: number, x: number, y: number) => ({
    [point]: x,
    [anchors + point]: y,
    [2 * anchors + point]: 20,
    [3 * anchors + point]: 8,
    [5 * anchors + point]: 0.9 - point / 10,
  })
  return detectorOnnx({
    input: 'uint8-nhwc',
    widthPx: 64,
    heightPx: 64,
    rows: 6,
    columns: anchors,
    fixed: { ...box(0, 32, 16), ...box(1, 32, 50) },
    metadata: namesMetadata(['blue', 'red']),
  })
}

describe('what counts as a detection', () => {
  const detections = async (repositoryDir: string, inference = {}) => {
    const rig = await startDetector({
      repositoryDir,
      ensemble: 'site',
      inference: { instances: 1, ...inference },
    })
    return (await rig.detect(rig.frame('cam', 1, [204, 0, 0]))).result?.detections
  }

  it('is said by the ensemble first, and by the pipeline file where it says nothing', async () => {
    const plain = siteRepository({ steps })
    expect(await detections(plain)).toHaveLength(1)
    expect(await detections(plain, { scoreThreshold: 0.9 })).toEqual([])
    const strict = siteRepository({ steps, parameters: { 'gantry.score_threshold': '0.9' } })
    expect(await detections(strict)).toEqual([])
    const lax = siteRepository({ steps, parameters: { 'gantry.score_threshold': '0.5' } })
    expect(await detections(lax, { scoreThreshold: 0.9 })).toHaveLength(1)
  })

  it('is said by the folder of the head where it has one', async () => {
    const own = ensembleStep(
      'my_head',
      { output0: 'head', geometry: 'geometry' },
      { detections: 'detections' },
    )
    const repository = siteRepository(
      { steps: [letterbox, detect, own], parameters: { 'gantry.score_threshold': '0.1' } },
      (dir) =>
        addModel(dir, 'my_head', {
          config:
            'backend: "detection_head" parameters { key: "gantry.score_threshold" value { string_value: "0.9" } }',
        }),
    )
    expect(await detections(repository)).toEqual([])
  })

  it('is no more than the ensemble allows', async () => {
    const two = siteRepository({ steps, parameters: { 'gantry.max_detections': '1' } }, (dir) =>
      addModel(dir, 'red', { onnx: twoBoxes() }),
    )
    expect(await detections(two)).toHaveLength(1)
    const all = siteRepository({ steps }, (dir) => addModel(dir, 'red', { onnx: twoBoxes() }))
    expect(await detections(all)).toHaveLength(2)
  })
})

const rows = '{ name: "IN" data_type: TYPE_FP32 dims: [ -1, 6 ] }'
const rowsOut = '{ name: "OUT" data_type: TYPE_FP32 dims: [ -1, 6 ] }'
const rowsToRows = `input ${rows} output ${rowsOut}`

describe('a step behind the head', () => {
  const raw = ensembleStep('detection_head', { output0: 'head', geometry: 'geometry' }, { detections: 'raw' })
  const after = ensembleStep('after', { IN: 'raw' }, { OUT: 'detections' })
  const site = { steps: [letterbox, detect, raw, after] }
  const withJs = (code: string) => siteRepository(site, (dir) => addJsModel(dir, 'after', rowsToRows, code))

  it('runs on cameras: what it makes of the boxes is published', async () => {
    const repositoryDir = withJs(`export default () => ({
      execute: ({ inputs }) => {
        const data = Float32Array.from(inputs.IN.data, (value, i) => (i % 6 === 4 ? value / 2 : i % 6 === 2 ? value + 1 : value))
        return { OUT: { shape: inputs.IN.shape, data } }
      },
    })`)
    const rig = await startDetector({ repositoryDir, ensemble: 'site', inference: { instances: 1 } })
    const { result } = await rig.detect(rig.frame('cam', 1, [204, 0, 0]))
    expect(result?.detections).toEqual([
      { label: 'red', score: expect.closeTo(0.4, 5) as number, boxPx: { x1: 22, y1: 12, x2: 43, y2: 20 } },
    ])
    expect((await rig.detect(rig.frame('cam', 2, [0, 0, 0]))).result?.detections).toEqual([])
    expect(rig.detector.takeStepFailures()).toEqual([])
  })

  it('R32: that fails costs nothing but what it says, and is counted', async () => {
    const repositoryDir = withJs(
      `export default () => ({ execute: () => { throw new Error('out of colours') } })`,
    )
    const rig = await startDetector({ repositoryDir, ensemble: 'site', inference: { instances: 1 } })
    const { result } = await rig.detect(rig.frame('cam', 1, [204, 0, 0]))
    expect(result?.detections).toMatchObject([{ label: 'red', boxPx: { x1: 22, y1: 12, x2: 42, y2: 20 } }])
    expect(rig.detector.takeStepFailures()).toEqual([{ step: 'after', failed: 1, late: 0 }])
    expect(rig.detector.takeStepFailures()).toEqual([])
    expect(JSON.stringify(rig.logLines)).toContain('out of colours')
  })

  it('that is late costs nothing but what it says, and is not waited for while it hangs', async () => {
    const repositoryDir = withJs(
      `export default () => ({ execute: () => new Promise(() => setInterval(() => undefined, 1e6)) })`,
    )
    const inference = { instances: 1, stepTimeoutMs: 50 }
    const rig = await startDetector({ repositoryDir, ensemble: 'site', inference })
    for (let seq = 1; seq <= 4; seq++) {
      const { result } = await rig.detect(rig.frame('cam', seq, [204, 0, 0]))
      expect(result?.detections).toHaveLength(1)
    }
    expect(rig.detector.takeStepFailures()).toEqual([{ step: 'after', failed: 0, late: 4 }])
  })

  it('that cannot be loaded is told by name', async () => {
    const repositoryDir = siteRepository(site, (dir) =>
      addJsModel(dir, 'after', rowsToRows, 'export default 3'),
    )
    await expect(startDetector({ repositoryDir, ensemble: 'site' })).rejects.toThrow(
      /model "after", which a step of the cameras runs, cannot be loaded: /,
    )
  })

  it('that reads the whole picture is refused by name', () => {
    const reads = ensembleStep('after', { IN: 'image' }, { OUT: 'text' })
    const repository = siteRepository(
      {
        steps: [...steps, reads],
        outputs: 'output { name: "text" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }',
      },
      (dir) =>
        addJsModel(
          dir,
          'after',
          'input { name: "IN" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] } output { name: "OUT" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }',
          'export default () => ({ execute: ({ inputs }) => ({ OUT: inputs.IN }) })',
        ),
    )
    expect(() => findCameraModel(repository, 'site')).toThrow(
      'step[3] (after) reads "image", the picture before its letterbox, which cameras do not keep',
    )
  })
})

describe('a detector that is a step like any other', () => {
  const boxes = `export default () => ({
    execute: ({ inputs }) => {
      const { data, shape } = inputs.pixels
      return { boxes: { shape: [1, 6], data: Float32Array.of(10, 10, 30, 20, data[0] / 255, 1) } }
    },
  })`
  const code = ensembleStep('code', { pixels: 'pixels' }, { boxes: 'detections' })
  const tensors =
    'input { name: "pixels" data_type: TYPE_UINT8 dims: [ 1, 64, 64, 3 ] } output { name: "boxes" data_type: TYPE_FP32 dims: [ -1, 6 ] label_filename: "labels.txt" }'
  const repositoryOf = (source: string) =>
    siteRepository({ steps: [letterbox, code] }, (dir) => {
      addJsModel(dir, 'code', tensors, source)
      writeFileSync(join(dir, 'code', 'labels.txt'), 'blue\nred\n')
    })

  it('runs for cameras', async () => {
    const rig = await startDetector({ repositoryDir: repositoryOf(boxes), ensemble: 'site' })
    expect(rig.detector.info).toMatchObject({
      model: { name: 'site', version: '1' },
      detector: { name: 'code' },
      provider: 'js',
      labels: ['blue', 'red'],
      format: { input: { widthPx: 64, heightPx: 64 } },
    })
    const { result } = await rig.detect(rig.frame('cam', 1, [204, 0, 0]))
    expect(result?.detections).toEqual([
      { label: 'red', score: expect.closeTo(0.8, 5) as number, boxPx: { x1: 10, y1: 10, x2: 30, y2: 20 } },
    ])
  })

  it('that fails sheds the frame with its reason, and goes on', async () => {
    const failing = `let calls = 0
      const { execute } = (${boxes.replace('export default ', '')})()
      export default () => ({ execute: (request) => { if (calls++ === 0) throw new Error('no light'); return execute(request) } })`
    const rig = await startDetector({ repositoryDir: repositoryOf(failing), ensemble: 'site' })
    const shed = await rig.detect(rig.frame('cam', 1, [204, 0, 0]))
    expect([shed.kind, shed.cause]).toEqual(['shed', 'inference_failed'])
    expect(String(shed.error)).toContain('no light')
    expect((await rig.detect(rig.frame('cam', 2, [204, 0, 0]))).kind).toBe('detected')
  })
})

it('attributes of later steps stand with their boxes, whatever step said them, also when another fails', async () => {
  const raw = ensembleStep(
    'detection_head',
    { output0: 'head', geometry: 'geometry' },
    { detections: 'detections' },
  )
  const names = ensembleStep('names', { IN: 'detections' }, { OUT: 'words' })
  const scores = ensembleStep('scores', { IN: 'detections' }, { OUT: 'numbers' })
  const failing = ensembleStep('failing', { IN: 'detections' }, { OUT: 'nothing' })
  const text = 'output { name: "OUT" data_type: TYPE_STRING dims: [ -1 ] }'
  const numbers = 'output { name: "OUT" data_type: TYPE_FP32 dims: [ -1, 2 ] label_filename: "labels.txt" }'
  const repositoryDir = siteRepository(
    {
      steps: [letterbox, detect, raw, names, scores, failing],
      outputs: `output { name: "words" data_type: TYPE_STRING dims: [ -1 ] }
        output { name: "numbers" data_type: TYPE_FP32 dims: [ -1, 2 ] }
        output { name: "nothing" data_type: TYPE_STRING dims: [ -1 ] }`,
      parameters: { 'gantry.attributes': 'place=words,colour=numbers,mood=nothing' },
    },
    (dir) => {
      addModel(dir, 'red', { onnx: twoBoxes() })
      addJsModel(
        dir,
        'names',
        `input ${rows} ${text}`,
        `export default () => ({ execute: ({ inputs: { IN } }) => ({
          OUT: { shape: [IN.shape[0]], data: Array.from({ length: IN.shape[0] }, (_, i) => (IN.data[i * 6 + 1] < 30 ? 'above' : '')) },
        }) })`,
      )
      addJsModel(
        dir,
        'scores',
        `input ${rows} ${numbers}`,
        `export default () => ({ execute: ({ inputs: { IN } }) => ({
          OUT: { shape: [IN.shape[0], 2], data: Float32Array.from({ length: IN.shape[0] * 2 }, (_, i) => (i % 2 ? 0.75 : 0.25)) },
        }) })`,
      )
      writeFileSync(join(dir, 'scores', 'labels.txt'), 'white\nyellow\n')
      addJsModel(
        dir,
        'failing',
        `input ${rows} ${text}`,
        `export default () => ({ execute: () => { throw new Error('no mood') } })`,
      )
    },
  )
  const rig = await startDetector({ repositoryDir, ensemble: 'site', inference: { instances: 1 } })
  const colour = { name: 'colour', value: 'yellow', score: 0.75 }
  expect((await rig.detect(rig.frame('cam', 1))).result?.detections).toMatchObject([
    { label: 'red', attributes: [{ name: 'place', value: 'above' }, colour] },
    { label: 'red', attributes: [colour] },
  ])
  expect(rig.detector.takeStepFailures()).toEqual([{ step: 'failing', failed: 1, late: 0 }])
})
