import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { probeModel } from '../../../../src/serving/repository/probe/model-probe.js'
import { buildOnnx, type OnnxSpec } from '../../../support/onnx-builder.js'
import { endlessOnnx, redDetector } from '../../../support/onnx-models.js'
import { otherUserWorks, thrownForOther } from '../../../support/other-user.js'
import { alive, descendants } from '../../../support/processes.js'
import { until } from '../../../support/until.js'

const limits = { memoryBytes: 1024 ** 3, cpuSeconds: 10 }
const never = new AbortController().signal

function modelFile(bytes: Uint8Array): string {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-probe-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const path = join(dir, 'model.onnx')
  writeFileSync(path, bytes)
  return path
}

/** One node that makes as many floats as a constant says. */
function memoryEater(elements: bigint): Uint8Array {
  const spec: OnnxSpec = {
    inputs: [],
    outputs: [{ name: 'out', type: 'float32', shape: ['n'] }],
    nodes: [{ op: 'ConstantOfShape', inputs: ['shape'], outputs: ['out'] }],
    constants: [{ name: 'shape', shape: [1], data: BigInt64Array.of(elements) }],
  }
  return buildOnnx(spec)
}

describe('a probe', () => {
  it('lets a good model pass', async () => {
    await probeModel({ modelPath: modelFile(redDetector('uint8-nhwc')), shapes: {} }, limits, never)
  })

  it.skipIf(!otherUserWorks)('R23: does not condemn a model that may not be read', () => {
    const modelPath = modelFile(redDetector('uint8-nhwc'))
    chmodSync(join(modelPath, '..'), 0o755)
    chmodSync(modelPath, 0)
    const module = 'serving/repository/probe/model-probe.js'
    const call = `probeModel(${JSON.stringify({ modelPath, shapes: {} })}, ${JSON.stringify(limits)}, new AbortController().signal)`
    expect(thrownForOther(module, call)).toMatchObject({
      code: 'GANTRY_ENVIRONMENT',
      message: expect.stringMatching(/no permission/) as string,
    })
  })

  it('R23: does not condemn a model when its process does not come up', async () => {
    const tooLittle = { ...limits, memoryBytes: -2.9 * 1024 ** 3 }
    const probe = probeModel(
      { modelPath: modelFile(redDetector('uint8-nhwc')), shapes: {} },
      tooLittle,
      never,
    )
    await expect(probe).rejects.toMatchObject({ code: 'GANTRY_ENVIRONMENT', retryable: true })
  })

  it.each([
    ['12 GiB', 3n * 1024n ** 3n],
    ['4 TiB', 1024n ** 4n],
  ])('S9: refuses a tiny model that asks for %s, and says why', async (_, elements) => {
    const probe = probeModel({ modelPath: modelFile(memoryEater(elements)), shapes: {} }, limits, never)
    await expect(probe).rejects.toMatchObject({
      code: 'GANTRY_MODEL_INVALID',
      message: expect.stringMatching(/memory/) as string,
    })
  })

  it('S9: refuses a model that computes without end, and says why', async () => {
    const probe = probeModel(
      { modelPath: modelFile(endlessOnnx()), shapes: {} },
      { ...limits, cpuSeconds: 2 },
      never,
    )
    await expect(probe).rejects.toMatchObject({
      code: 'GANTRY_MODEL_INVALID',
      message: expect.stringMatching(/processor time/) as string,
    })
  })

  it('R20: ends with its process when the service stops', async () => {
    const stop = new AbortController()
    const probe = probeModel({ modelPath: modelFile(endlessOnnx()), shapes: {} }, limits, stop.signal)
    const refused = expect(probe).rejects.toMatchObject({
      code: 'GANTRY_MODEL_INVALID',
      message: expect.stringMatching(/the service stops/) as string,
    })
    const { pid } = await until('the process', () =>
      descendants(process.pid).find(({ command }) => command.includes('probe-main.js')),
    )
    stop.abort()
    await refused
    expect(alive(pid)).toBe(false)
  })

  it.each([
    ['an empty file', 0],
    ['a file cut in the middle', 0.5],
    ['a file without its last byte', 0.999],
  ])('S9: refuses %s', async (_, share) => {
    const whole = redDetector('uint8-nhwc')
    const modelPath = modelFile(whole.subarray(0, Math.floor(whole.length * share)))
    await expect(probeModel({ modelPath, shapes: {} }, limits, never)).rejects.toMatchObject({
      code: 'GANTRY_MODEL_INVALID',
      message: expect.stringMatching(/cannot load/) as string,
    })
  })

  it('S9: refuses weights outside of the folder of the model', async () => {
    const modelPath = modelFile(externalWeights('../weights.bin'))
    writeFileSync(join(modelPath, '../../weights.bin'), new Uint8Array(16))
    onTestFinished(() => rmSync(join(modelPath, '../../weights.bin')))
    await expect(probeModel({ modelPath, shapes: {} }, limits, never)).rejects.toMatchObject({
      code: 'GANTRY_MODEL_INVALID',
      message: expect.stringMatching(/weights\.bin/) as string,
    })
  })
})

/** A model whose only weight lies in another file. */
function externalWeights(location: string): Uint8Array {
  return buildOnnx({
    inputs: [{ name: 'in', type: 'float32', shape: [4] }],
    outputs: [{ name: 'out', type: 'float32', shape: [4] }],
    nodes: [{ op: 'Add', inputs: ['in', 'weight'], outputs: ['out'] }],
    constants: [{ name: 'weight', shape: [4], data: new Float32Array(4), location }],
  })
}
