import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { RunChoice } from '../../src/runtime/batch-sizes.js'
import { letterboxOf } from '../../src/vision/letterbox.js'
import { clipFrame } from '../support/clip-frame.js'
import { addModel, redDetector, type TestInput } from '../support/onnx-models.js'
import { startDetector, type DetectorRig } from '../support/detector-rig.js'
import { gpuWorkers, recordShapes, type ShapedRun, tellMemory } from '../support/simulated-gpus.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

function repository(input: TestInput, batch?: number): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector(input, batch) })
  return dir
}

const start = (input: TestInput, providers: ('cuda' | 'cpu')[], batch?: number, batchSizes?: number[]) =>
  startDetector({
    repositoryDir: repository(input, batch),
    ensemble: 'red',
    inference: { providers, instances: 1, maxBatchSize: 4, maxQueueDelayMs: 50, batchSizes },
    workerEntry: gpuWorkers.detector,
  })

/** So many cameras at once, each with a red of its own. @returns what was found, by camera. */
async function burst(rig: DetectorRig, cameras: number, seq: number): Promise<unknown[]> {
  const outcomes = await Promise.all(
    Array.from({ length: cameras }, (_, n) => rig.detect(rig.frame(`cam-${n}`, seq, [255 - n * 51, 0, 0]))),
  )
  for (let n = cameras; n < 6; n++) rig.detector.removeCamera(`cam-${n}`)
  return outcomes.map(({ result }) => result?.detections.map(({ score }) => Math.round(score * 100) / 100))
}

/** Waits until batches have all sizes. */
const warm = (rig: DetectorRig) =>
  until('all sizes are warm', () => rig.detector.info.sizes?.toCome.length === 0)

const ready = (rig: DetectorRig) => rig.logLines.find(({ msg }) => msg === 'detector is ready')

const sizes = [1, 4, 2, 3, 1, 6, 2]

/** Of each session, in the order of its first run. */
function shapesBySession(runs: readonly ShapedRun[]): string[][] {
  const seen = new Map<string, Set<string>>()
  for (const { session, shapes } of runs) seen.set(session, (seen.get(session) ?? new Set()).add(shapes))
  return [...seen.values()].map((shapes) => [...shapes])
}

describe('a detector on a provider that charges for a change of shape', () => {
  it.each(['uint8-nhwc', 'float32-nchw', 'float16-nchw'] as const)(
    'shows each session one shape, from its load on, whatever number of cameras sends (%s)',
    async (input) => {
      const runs = recordShapes()
      const rig = await start(input, ['cuda', 'cpu'])
      expect(rig.detector.info.provider).toBe('cuda')
      const shape = input.endsWith('nhwc') ? '64x64x3' : '3x64x64'
      await warm(rig)
      const atLoad = runs()
      expect(shapesBySession(atLoad)).toEqual([[`images 1x${shape}`], [`images 4x${shape}`]])
      expect(atLoad.filter(({ changed }) => changed)).toHaveLength(2)
      expect(rig.detector.info.sizes?.warm.map(({ size }) => size)).toEqual([1, 4])
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
      // On a machine that is busy the larger size may have been measured to take longer than frames one by one.
      const choice = new RunChoice(rig.detector.info.sizes?.warm ?? [])
      const isBatched = [2, 3, 4].map((waiting) => choice.itemsOf(waiting) > 1)
      if (isBatched.every(Boolean)) expect(new Set(batches).size).toBeGreaterThan(1)
      if (!isBatched.some(Boolean)) expect(new Set(batches)).toEqual(new Set([1]))
    },
  )

  it.each([[[1]], [[2]], [[3, 1]], [[1, 2, 3, 4]]])(
    'shows each session one shape with the sizes %j, whatever comes',
    async (batchSizes) => {
      const runs = recordShapes()
      const rig = await start('uint8-nhwc', ['cuda', 'cpu'], undefined, batchSizes)
      // The first bursts come while sizes are warmed.
      const bursts = fc.sample(fc.integer({ min: 1, max: 6 }), 12)
      for (const [index, cameras] of bursts.entries()) {
        if (index === 4) await warm(rig)
        await burst(rig, cameras, index + 1)
      }
      const all = runs()
      const shapes = [...new Set([...batchSizes, 4])].sort().map((size) => [`images ${size}x64x64x3`])
      expect(shapesBySession(all), bursts.join(' ')).toEqual(shapes)
      expect(all.filter(({ changed }) => changed)).toHaveLength(shapes.length)
    },
  )

  it('keeps its throughput while the number of cameras changes: no change is charged once sizes are warm', async () => {
    const runs = recordShapes()
    const rig = await start('uint8-nhwc', ['cuda', 'cpu'])
    await warm(rig)
    runs()
    const cameras = Array.from({ length: 24 }, (_, n) => 1 + ((n * 3) % 4))
    for (const [index, count] of cameras.entries()) await burst(rig, count, index + 1)
    const ran = runs()
    // With a run of as many frames as came, each burst would have been charged.
    expect(ran.length).toBeGreaterThanOrEqual(cameras.length)
    expect(ran.filter(({ changed }) => changed)).toEqual([])
    expect(rig.outcomes.filter(({ result }) => result !== undefined)).toHaveLength(
      cameras.reduce((sum, count) => sum + count, 0),
    )
  })

  it.each([
    ['1', [4]],
    ['2', [1, 4]],
  ])(
    'runs the largest size, and what else fits, where there is room for %s sessions',
    async (most, sizes) => {
      process.env.MOST_SESSIONS = most
      onTestFinished(() => void delete process.env.MOST_SESSIONS)
      const runs = recordShapes()
      const rig = await start('uint8-nhwc', ['cuda', 'cpu'], undefined, [1, 2, 4])
      expect(rig.detector.info).toMatchObject({ provider: 'cuda', providerFailures: [] })
      await warm(rig)
      expect(rig.detector.info.sizes?.warm.map(({ size }) => size)).toEqual(sizes)
      expect(await burst(rig, 3, 1)).toEqual([[1], [0.8], [0.6]])
      expect(runs().filter(({ changed }) => changed)).toHaveLength(sizes.length)
      expect(rig.logLines).toContainEqual(
        expect.objectContaining({ model: 'red', reason: expect.stringContaining('out of memory') as string }),
      )
    },
  )

  it('begins with the smallest size, and warms the others one instance after another', async () => {
    const runs = recordShapes()
    const rig = await startDetector({
      repositoryDir: repository('uint8-nhwc'),
      ensemble: 'red',
      inference: { providers: ['cuda', 'cpu'], instances: 2, maxBatchSize: 8, maxQueueDelayMs: 50 },
      workerEntry: gpuWorkers.detector,
    })
    const atReady = rig.detector.info.sizes
    expect([atReady?.warm.map(({ size }) => size), atReady?.toCome]).toEqual([[1], [4, 8]])
    expect(await burst(rig, 3, 1)).toEqual([[1], [0.8], [0.6]])
    await warm(rig)
    expect(await burst(rig, 4, 2)).toEqual([[1], [0.8], [0.6], [0.4]])
    const all = runs()
    expect(
      all.filter(({ changed }) => changed).map(({ shapes }) => Number(/ (\d+)x/.exec(shapes)?.[1])),
    ).toEqual([1, 1, 4, 4, 8, 8])
    expect(rig.logLines).toContainEqual(
      expect.objectContaining({
        msg: 'sizes of batches are warm',
        sizes: [1, 4, 8].map((size) => expect.stringMatching(`^${size}: [\\d.]+ ms$`) as string),
      }),
    )
  })

  it('tells what each size takes of the memory of the card', async () => {
    tellMemory()
    const rig = await start('uint8-nhwc', ['cuda', 'cpu'])
    await warm(rig)
    expect(rig.detector.info.sizes?.warm.map(({ memoryBytes = 0 }) => memoryBytes / 1024 ** 2)).toEqual([
      110, 140,
    ])
  })

  it('keeps to the sizes that run where the card has no room for a larger run', async () => {
    process.env.MOST_ROWS = '4'
    onTestFinished(() => void delete process.env.MOST_ROWS)
    const rig = await startDetector({
      repositoryDir: repository('uint8-nhwc'),
      ensemble: 'red',
      inference: { providers: ['cuda', 'cpu'], instances: 1, maxBatchSize: 8, maxQueueDelayMs: 50 },
      workerEntry: gpuWorkers.detector,
    })
    await warm(rig)
    expect(rig.detector.info).toMatchObject({ provider: 'cuda', providerFailures: [] })
    expect(rig.detector.info.sizes?.warm.map(({ size }) => size)).toEqual([1, 4])
    expect(await burst(rig, 6, 1)).toEqual([[1], [0.8], [0.6], [0.4], [], []])
    expect(rig.logLines).toContainEqual(
      expect.objectContaining({
        sizes: [8],
        reason: expect.stringContaining('out of memory') as string,
      }),
    )
  })

  describe('with few rows of its head handed over', () => {
    const startFew = (rows: string) => {
      const dir = repository('uint8-nhwc')
      const config = `name: "red" parameters { key: "gantry.head_top_rows" value { string_value: "${rows}" } }`
      writeFileSync(join(dir, 'red', 'config.pbtxt'), config)
      return startDetector({
        repositoryDir: dir,
        ensemble: 'red',
        inference: { providers: ['cuda', 'cpu'], instances: 1, maxBatchSize: 4, maxQueueDelayMs: 50 },
        workerEntry: gpuWorkers.detector,
      })
    }
    it.each([
      ['10', 10],
      ['0', 'gantry.head_top_rows is 0'],
      ['84', 'it has 84 rows, which is not more than 84'],
    ])('finds the same with %s, and says how many', async (rows, said) => {
      const rig = await startFew(rows)
      expect(ready(rig)).toMatchObject({ provider: 'cuda', headRows: said })
      for (const cameras of [1, 3])
        expect(await burst(rig, cameras, cameras)).toEqual([[1], [0.8], [0.6]].slice(0, cameras))
    })

    it('reads all where the provider does not run the graph that chooses', async () => {
      process.env.AS_FILED = '1'
      onTestFinished(() => void delete process.env.AS_FILED)
      const rig = await startFew('10')
      expect(ready(rig)).toMatchObject({ provider: 'cuda' })
      expect(ready(rig)?.headRows).toMatch(/no kernel for TopK/)
      expect(await burst(rig, 3, 1)).toEqual([[1], [0.8], [0.6]])
    })

    it.each(['-1', '1.5', 'few'])('refuses %s rows', async (rows) => {
      await expect(startFew(rows)).rejects.toThrow(/gantry\.head_top_rows is "/)
    })
  })

  it('finds with the shipped detector what the CPU finds in all rows', async () => {
    const clip = fileURLToPath(new URL('../../pipelines/demo/clips/yard.mp4', import.meta.url))
    const size = { widthPx: 1280, heightPx: 720 }
    const foundOn = async (provider: 'cuda' | 'cpu') => {
      const rig = await startDetector({
        repositoryDir: fileURLToPath(new URL('../../models', import.meta.url)),
        ensemble: 'ppe_detect_video_fp32',
        inference: { providers: [provider], instances: 1, maxBatchSize: 1 },
        workerEntry: gpuWorkers.detector,
      })
      const { format } = rig.detector.info
      const frame = {
        ...rig.frame('cam', 1),
        rgbHwc: clipFrame(clip, 30, size, format),
        letterbox: letterboxOf(size, format.input, format.align),
        source: size,
        regionPx: { x: 0, y: 0, ...size },
      }
      const { result } = await rig.detect(frame)
      return { detections: result?.detections ?? [], rows: ready(rig)?.headRows }
    }
    const cpu = await foundOn('cpu')
    const cuda = await foundOn('cuda')
    expect(cpu.detections.length).toBeGreaterThan(2)
    expect([cpu.rows, cuda.rows]).toEqual([undefined, 1_000])
    expect(cuda.detections).toEqual(cpu.detections)
  })

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
