import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { checkFloat16 } from '../../../src/cli/checks/float16-check.js'
import { inferenceSchema } from '../../../src/config/inference.js'
import { Float16Findings } from '../../../src/detector/float16-findings.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

const onCuda = [{ provider: 'cuda', state: 'runs', reason: '' }] as const
const onCpu = [{ provider: 'cpu', state: 'runs', reason: '' }] as const

/** `red`, which names `red16` as the same in float16, and `plain`, which names none. */
function rig() {
  const dir = tempDir()
  const onnx = redDetector('uint8-nhwc')
  const config =
    'parameters { key: "gantry.float16_model" value { string_value: "red16" } } max_batch_size: 4'
  addModel(dir, 'red', { onnx, config })
  addModel(dir, 'red16', { onnx, config: 'max_batch_size: 4' })
  addModel(dir, 'plain', { onnx })
  const folder = tempDir()
  const findings = new Float16Findings(
    () => folder,
    (deviceId) => Promise.resolve(deviceId === 1 ? undefined : `GPU-${deviceId} 580`),
  )
  const paths = ['red', 'red16'].map((name) => join(dir, name, '1', 'model.onnx'))
  const keep = (ms: number, float16Ms: number) =>
    findings.keep({ paths: [paths[0]!, paths[1]!], size: 4, deviceId: 0 }, { size: 4, ms, float16Ms })
  const check = (ensemble: string, states: Parameters<typeof checkFloat16>[3] = onCuda) =>
    checkFloat16(dir, ensemble, inferenceSchema.parse({ devices: [0, 1], maxBatchSize: 4 }), states, findings)
  return { keep, check }
}

it('tells both figures that are remembered, and which model is taken', async () => {
  vi.stubEnv('CUDA_VISIBLE_DEVICES', '0,1')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { keep, check } = rig()
  await keep(4.9, 3.1)
  expect(await check('red')).toEqual([
    {
      subject: 'float16 on GPU 0',
      state: 'ok',
      detail: 'float16 takes 3.1 ms for a batch of 4, float32 4.9 ms: red16 is taken',
    },
    {
      subject: 'float16 on GPU 1',
      state: 'ok',
      detail:
        'not measured with this card, driver and runtime: the first load runs a batch of 4 of red and of red16, and takes the faster',
    },
  ])
  await keep(3, 2.99)
  expect((await check('red'))[0]?.detail).toMatch(/: red is taken$/)
})

it('says nothing without a GPU, without a model in float16, or of a model that is not there', async () => {
  const { check } = rig()
  expect(await check('red', onCpu)).toEqual([])
  expect(await check('plain')).toEqual([])
  expect(await check('nobody')).toEqual([])
})
