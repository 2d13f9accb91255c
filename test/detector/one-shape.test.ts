import { describe, expect, it } from 'vitest'
import { addModel, redDetector, type TestInput } from '../support/onnx-models.js'
import { startDetector, type DetectorRig } from '../support/detector-rig.js'
import { oneShapeWorkers, recordShapes } from '../support/one-shape.js'
import { tempDir } from '../support/temp-dir.js'

function repository(input: TestInput, batch?: number): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector(input, batch) })
  return dir
}

const start = (input: TestInput, providers: ('cuda' | 'cpu')[], batch?: number) =>
  startDetector({
    repositoryDir: repository(input, batch),
    ensemble: 'red',
    inference: { providers, instances: 1, maxBatchSize: 4, maxQueueDelayMs: 50 },
    workerEntry: oneShapeWorkers.detector,
  })

/** So many cameras at once, each with a red of its own. @returns what was found, by camera. */
async function burst(rig: DetectorRig, cameras: number, seq: number): Promise<unknown[]> {
  const outcomes = await Promise.all(
    Array.from({ length: cameras }, (_, n) => rig.detect(rig.frame(`cam-${n}`, seq, [255 - n * 51, 0, 0]))),
  )
  for (let n = cameras; n < 6; n++) rig.detector.removeCamera(`cam-${n}`)
  return outcomes.map(({ result }) => result?.detections.map(({ score }) => Math.round(score * 100) / 100))
}

const sizes = [1, 4, 2, 3, 1, 6, 2]

describe('a detector on a provider that charges for a change of shape', () => {
  it.each(['uint8-nhwc', 'float32-nchw'] as const)(
    'sees one shape from its load on, whatever number of cameras sends (%s)',
    async (input) => {
      const runs = recordShapes()
      const rig = await start(input, ['cuda', 'cpu'])
      expect(rig.detector.info.provider).toBe('cuda')
      const shape = input === 'uint8-nhwc' ? 'images 4x64x64x3' : 'images 4x3x64x64'
      expect(runs().map(({ shapes }) => shapes)).toEqual([shape])
      for (const [index, cameras] of sizes.entries())
        expect(await burst(rig, cameras, index + 1)).toEqual(
          Array.from({ length: cameras }, (_, n) =>
            [Math.round((1 - n / 5) * 100) / 100].filter((s) => s >= 0.3),
          ),
        )
      const after = runs()
      expect(after.length).toBeGreaterThanOrEqual(sizes.length)
      expect(after.filter(({ changed }) => changed)).toEqual([])
      // What the records say is what was asked, not what was run.
      const batches = rig.outcomes.map(({ result }) => result?.batchSize)
      expect(batches[0]).toBe(1)
      expect(new Set(batches).size).toBeGreaterThan(1)
    },
  )

  it('leaves a model that takes one frame at a time as it is', async () => {
    const runs = recordShapes()
    const rig = await start('uint8-nhwc', ['cuda', 'cpu'], 1)
    expect(await burst(rig, 2, 1)).toEqual([[1], [0.8]])
    expect(new Set(runs().map(({ shapes }) => shapes))).toEqual(new Set(['images 1x64x64x3']))
  })
})

describe('a detector on the CPU', () => {
  it('runs what there is', async () => {
    const runs = recordShapes()
    const rig = await start('uint8-nhwc', ['cpu'])
    expect(await burst(rig, 3, 1)).toEqual([[1], [0.8], [0.6]])
    expect(runs()).toEqual([])
    expect(rig.detector.info).toMatchObject({ provider: 'cpu', maxBatchSize: 4 })
  })
})
