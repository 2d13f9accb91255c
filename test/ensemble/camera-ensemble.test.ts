import { describe, expect, it } from 'vitest'
import { startDetector } from '../support/detector-rig.js'
import { ensembleStep, type EnsembleText, pictureEnsemble, redSteps } from '../support/ensemble-text.js'
import { addModel, detectorOnnx, namesMetadata, redDetector } from '../support/onnx-models.js'
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
