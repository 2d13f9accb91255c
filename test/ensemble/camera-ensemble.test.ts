import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { inferenceSchema } from '../../src/config/inference.js'
import { findCameraModel } from '../../src/ensemble/camera-model.js'
import type { EnsembleHost } from '../../src/ensemble/create-ensemble-model.js'
import { openCameraGraph } from '../../src/ensemble/open-camera-graph.js'
import { EngineSteps } from '../../src/processes/engine/step-models.js'
import { startDetector } from '../support/detector-rig.js'
import { ensembleStep, type EnsembleText, pictureEnsemble, redSteps } from '../support/ensemble-text.js'
import { addJsModel, addModel, detectorOnnx, namesMetadata, redDetector } from '../support/onnx-models.js'
import { recordingLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

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

describe('a detector that is a step, beside another', () => {
  const tensors = (output: string) => `input { name: "pixels" data_type: TYPE_UINT8 dims: [ 1, 64, 64, 3 ] }
    output { name: "boxes" data_type: TYPE_FP32 dims: [ ${output} ] }`
  const fails = (problem: string) =>
    `export default () => ({ execute: () => { throw new Error('${problem}') } })`
  const besides = ensembleStep('besides', { pixels: 'pixels' }, { boxes: 'weather' })
  const code = ensembleStep('code', { pixels: 'pixels' }, { boxes: 'detections' })
  const outputs = 'output { name: "weather" data_type: TYPE_FP32 dims: [ -1, 5 ] }'
  const repositoryOf = (detector: string, besidesCode: string, parameters = {}) =>
    siteRepository({ steps: [letterbox, besides, code], outputs, parameters }, (dir) => {
      addJsModel(dir, 'besides', tensors('-1, 5'), besidesCode)
      addJsModel(dir, 'code', tensors('-1, -1'), detector)
    })

  it('names what failed for the boxes when both fail', async () => {
    const repositoryDir = repositoryOf(
      `export default () => ({ execute: () => new Promise((_, reject) => setImmediate(() => reject(new Error('no light')))) })`,
      fails('no weather'),
    )
    const rig = await startDetector({ repositoryDir, ensemble: 'site' })
    for (let seq = 1; seq <= 3; seq++)
      expect(String((await rig.detect(rig.frame('cam', seq))).error)).toContain('no light')
  })

  it('does not wait for the other without boxes', async () => {
    const repositoryDir = repositoryOf(
      fails('no light'),
      `export default () => ({ execute: () => new Promise(() => setInterval(() => undefined, 1e6)) })`,
    )
    const inference = { stepTimeoutMs: 60_000 }
    const rig = await startDetector({ repositoryDir, ensemble: 'site', inference })
    expect(String((await rig.detect(rig.frame('cam', 1))).error)).toContain('no light')
  })

  it('says that boxes have not their form', async () => {
    const repositoryDir = repositoryOf(
      `export default () => ({ execute: () => ({ boxes: { shape: [1, 5], data: new Float32Array(5) } }) })`,
      fails('no weather'),
    )
    const rig = await startDetector({ repositoryDir, ensemble: 'site' })
    expect(String((await rig.detect(rig.frame('cam', 1))).error)).toContain(
      'output "detections" has not the form of detections',
    )
  })

  it('leaves no model behind when the start fails', async () => {
    const repositoryDir = repositoryOf(fails('a'), fails('b'), { 'gantry.attributes': 'mood=none' })
    const { log } = recordingLog()
    const inference = inferenceSchema.parse({ providers: ['cpu'] })
    const models = new EngineSteps({
      repositories: [repositoryDir],
      inference,
      allowJsBackends: true,
      onHung: () => undefined,
      log,
    })
    onTestFinished(() => models.stop(1_000))
    let host: EnsembleHost | undefined
    const { ensemble, ...model } = findCameraModel(repositoryDir, 'site')
    const load = async (names: readonly string[]) => (host = await models.load(names))
    const limits = { stepTimeoutMs: 1_000, runTimeoutMs: 1_000, limits: inference }
    await expect(
      openCameraGraph({ ...model, ensemble: ensemble! }, undefined, {
        models: { load, stop: (drainMs) => models.stop(drainMs) },
        log,
        ...limits,
      }),
    ).rejects.toThrow('is none of the ensemble')
    expect(host).toBeDefined()
    expect(host?.find('code', -1)).toBeUndefined()
  })
})

it('R33: the model of a step that was given up comes back once it can run', async () => {
  const raw = ensembleStep('detection_head', { output0: 'head', geometry: 'geometry' }, { detections: 'raw' })
  const after = ensembleStep('after', { IN: 'raw' }, { OUT: 'detections' })
  const faulty = join(tempDir(), 'faulty')
  writeFileSync(faulty, '')
  const repositoryDir = siteRepository({ steps: [letterbox, detect, raw, after] }, (dir) =>
    addJsModel(
      dir,
      'after',
      rowsToRows,
      `import { existsSync } from 'node:fs'
       export default () => ({ execute: ({ inputs: { IN } }) => {
         if (existsSync(${JSON.stringify(faulty)})) process.exit(1)
         return { OUT: { shape: [0, 6], data: new Float32Array(0) } }
       } })`,
    ),
  )
  const inference = { instances: 1, stepTimeoutMs: 200 }
  const rig = await startDetector({ repositoryDir, ensemble: 'site', inference })
  let seq = 0
  const boxes = async () => (await rig.detect(rig.frame('cam', ++seq, [204, 0, 0]))).result?.detections.length
  const said = (text: string) => JSON.stringify(rig.logLines).includes(text)
  await until('it to be given up', async () => (await boxes()) === 1 && said('loading it again'), 30_000)
  expect(await boxes()).toBe(1)
  const [failures] = rig.detector.takeStepFailures()
  expect(failures?.step).toBe('after')
  // A machine that is slow takes longer over some of the five deaths than the step has.
  const { failed = 0, late = 0 } = failures ?? {}
  expect(failed + late).toBeGreaterThanOrEqual(5)
  rmSync(faulty)
  await until('it to come back', async () => (await boxes()) === 0, 30_000)
  expect(said('model of a step serves again')).toBe(true)
}, 70_000)

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
