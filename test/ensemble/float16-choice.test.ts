import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Float16Findings } from '../../src/detector/float16-findings.js'
import type { ExecutionProvider } from '../../src/config/inference.js'
import { startDetector } from '../support/detector-rig.js'
import { gpuWorkers } from '../support/simulated-gpus.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

const kept = (folder = tempDir()) =>
  new Float16Findings(
    () => folder,
    () => Promise.resolve('GPU-1 580'),
  )

/** `red`, and `red16`, which would be the same in float16: what tells their files apart is the name of a dimension. */
function repository(): string {
  const dir = tempDir()
  const config =
    'parameters { key: "gantry.float16_model" value { string_value: "red16" } } max_batch_size: 4'
  addModel(dir, 'red', { onnx: redDetector('uint8-nhwc', 'in_float32'), config })
  addModel(dir, 'red16', { onnx: redDetector('uint8-nhwc', 'in_float16'), config: 'max_batch_size: 4' })
  return dir
}

async function start(dir: string, findings: Float16Findings, provider: ExecutionProvider = 'cuda') {
  const rig = await startDetector({
    repositoryDir: dir,
    ensemble: 'red',
    inference: { providers: provider === 'cpu' ? ['cpu'] : [provider, 'cpu'], instances: 2, maxBatchSize: 4 },
    workerEntry: gpuWorkers.detector,
    findings,
  })
  const { result } = await rig.detect(rig.frame('cam', 1, [255, 0, 0]))
  expect(result?.detections).toHaveLength(1)
  const { detector, float16, provider: used } = rig.detector.info
  const told = rig.logLines.filter(({ msg }) => /float16 (takes|does not run)/.test(String(msg)))
  return { name: detector.name, float16, used, told, notes: rig.detector.info.providerNotes }
}

function marked(key: 'SLOW_MARK' | 'UNFIT_MARK', mark: string): void {
  vi.stubEnv(key, mark)
  onTestFinished(() => void vi.unstubAllEnvs())
}

describe('a detector that names its model in float16, on a GPU', () => {
  it('runs in float16 where that was measured to be faster, and measures once', async () => {
    marked('SLOW_MARK', 'in_float32')
    const [dir, findings] = [repository(), kept()]
    const first = await start(dir, findings)
    expect(first).toMatchObject({ name: 'red16', used: 'cuda', float16: { model: 'red16', isTaken: true } })
    const { comparison } = first.float16!
    expect(comparison).toMatchObject({ size: 4 })
    expect('float16Ms' in comparison && comparison.float16Ms).toBeLessThan(comparison.ms)
    expect(first.told).toEqual([expect.objectContaining({ model: 'red16', taken: 'float16' })])
    const second = await start(dir, findings)
    expect(second).toMatchObject({ name: 'red16', float16: first.float16, told: [] })
  })

  it('stays in float32 where that gains nothing, and measures once', async () => {
    marked('SLOW_MARK', 'in_float16')
    const [dir, findings] = [repository(), kept()]
    const first = await start(dir, findings)
    expect(first).toMatchObject({ name: 'red', used: 'cuda', float16: { model: 'red16', isTaken: false } })
    expect(first.told).toEqual([expect.objectContaining({ taken: 'float32' })])
    expect(await start(dir, findings)).toMatchObject({ name: 'red', float16: first.float16, told: [] })
  })

  it('stays in float32 where the card lacks float16, and says why', async () => {
    marked('UNFIT_MARK', 'in_float16')
    const { name, float16, told } = await start(repository(), kept())
    expect([name, float16?.isTaken]).toEqual(['red', false])
    expect(float16?.comparison).toMatchObject({
      reason: expect.stringContaining('GPU 0 lacks what the model computes with') as string,
    })
    expect(told).toHaveLength(1)
  })

  it('is as ever on a CPU', async () => {
    const found = await start(repository(), kept(), 'cpu')
    expect(found).toMatchObject({ name: 'red', used: 'cpu', float16: undefined, told: [], notes: [] })
  })
})

describe('a model in float16 is refused', () => {
  const withOther = (name: string, add: (dir: string) => void) => {
    const dir = repository()
    const config = `parameters { key: "gantry.float16_model" value { string_value: "${name}" } }`
    writeFileSync(join(dir, 'red', 'config.pbtxt'), config)
    add(dir)
    return start(dir, kept(), 'cpu')
  }

  it.each([
    ['that is the model itself', 'red', 'gantry.float16_model is the model itself'],
    ['that is not there', 'nobody', 'nobody'],
    ['with other tensors', 'other', 'gantry.float16_model has other tensors: "red" has'],
    ['with other labels', 'labels', 'gantry.float16_model has other labels'],
  ])('%s', async (_, name, message) => {
    const started = withOther(name, (dir) => {
      addModel(dir, 'other', { onnx: redDetector('float32-nchw') })
      addModel(dir, 'labels', { onnx: redDetector('uint8-nhwc'), labels: 'one\ntwo\n' })
    })
    await expect(started).rejects.toThrow(message)
  })
})
