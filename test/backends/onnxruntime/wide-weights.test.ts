import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ModelInvalidError } from '../../../src/repository/errors.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { emptyModelConfig } from '../../../src/repository/model-config.js'
import type { Processor } from '../../../src/backends/onnxruntime/processor.js'
import { readWideWeights, saturationOf } from '../../../src/backends/onnxruntime/wide-weights.js'
import { qdqConv, quantisedLayers } from '../../support/quantised-models.js'
import { tempDir } from '../../support/temp-dir.js'

const own = join(import.meta.dirname, '../../../models')

function written(onnx: Uint8Array): string {
  const path = join(tempDir(), 'model.onnx')
  writeFileSync(path, onnx)
  return path
}

const processor = (architecture: string, ...flags: string[]): Processor => ({
  architecture,
  flags: new Set(flags),
})
const zen3 = processor('x64', 'avx', 'avx2', 'fma')

describe('R26: readWideWeights', () => {
  // `int8-arithmetic.test.ts` holds what is concerned against what ONNX Runtime computes.
  it.each(quantisedLayers)('tells whether sums of this layer can saturate: $name', ({ onnx, concerned }) => {
    expect(readWideWeights(written(onnx)).wide).toBe(concerned ? 1 : 0)
  })

  it.each(['ppe_detect', 'ppe_detect_fp16', 'ppe_detect_int8', 'ppe_detect_video'])(
    'finds nothing in the published %s',
    (name) => {
      const { layers, wide } = readWideWeights(join(own, name, '1', 'model.onnx'))
      expect(wide).toBe(0)
      expect(layers > 40).toBe(name.endsWith('int8') || name.endsWith('video'))
    },
  )

  it.each([65, -65, -128, 127])(
    'takes %i for too large, also where weights are written as numbers',
    (weight) => {
      const asNumbers = qdqConv({ weight, constants: (constant) => [{ ...constant, asNumbers: true }] })
      expect(readWideWeights(written(asNumbers.onnx)).wide).toBe(1)
      expect(readWideWeights(written(qdqConv({ weight }).onnx)).wide).toBe(1)
    },
  )

  it.each([64, -64, 0, -1])('takes %i for small enough, written as a number', (weight) => {
    const asNumbers = qdqConv({ weight, constants: (constant) => [{ ...constant, asNumbers: true }] })
    expect(readWideWeights(written(asNumbers.onnx))).toMatchObject({ layers: 1, wide: 0 })
  })

  it('reads weights to their last, however many there are', () => {
    const shape = [16, 16, 64, 64]
    const data = new Int8Array(16 * 16 * 64 * 64)
    data[data.length - 1] = 100
    const { onnx } = qdqConv({ constants: () => [{ name: 'w', shape, data }] })
    expect(readWideWeights(written(onnx)).wide).toBe(1)
    data[data.length - 1] = 10
    expect(
      readWideWeights(written(qdqConv({ constants: () => [{ name: 'w', shape, data }] }).onnx)).wide,
    ).toBe(0)
  })

  it('reads weights that lie in a file beside the model, from where they begin', () => {
    const { onnx } = qdqConv({ constants: (w) => [{ ...w, location: 'weights.bin', offset: 100 }] })
    const path = written(onnx)
    const data = new Int8Array(100 + 16 * 16 * 9)
    data.fill(127, 0, 100)
    writeFileSync(join(path, '..', 'weights.bin'), data)
    expect(readWideWeights(path)).toMatchObject({ layers: 1, wide: 0 })
    writeFileSync(join(path, '..', 'weights.bin'), data.fill(70, 100))
    expect(readWideWeights(path).wide).toBe(1)
  })

  it.each(['../weights.bin', '/etc/hostname', 'absent.bin'])('leaves weights at %s alone', (location) => {
    const { onnx } = qdqConv({ constants: (w) => [{ ...w, location }] })
    const folder = join(tempDir(), 'model')
    mkdirSync(folder)
    writeFileSync(join(folder, '..', 'weights.bin'), new Int8Array(16 * 16 * 9).fill(127))
    writeFileSync(join(folder, 'model.onnx'), onnx)
    expect(readWideWeights(join(folder, 'model.onnx')).wide).toBe(0)
  })

  it('names a layer', () => {
    expect(readWideWeights(written(qdqConv().onnx)).example).toBe('Conv_3')
  })

  it('refuses a file that is cut short', () => {
    const { onnx } = qdqConv()
    const path = written(onnx)
    for (let length = 1; length < onnx.length; length += 97) {
      writeFileSync(path, onnx.subarray(0, length))
      expect(() => readWideWeights(path), `${length} bytes`).toThrow(ModelInvalidError)
    }
  })
})

describe('saturationOf', () => {
  const path = () => written(qdqConv().onnx)

  it('says what is wrong on a processor with AVX2 alone, and what to do', () => {
    const saturation = saturationOf({ path: path(), config: emptyModelConfig }, zen3)
    expect(saturation?.detail).toContain('in 1 of 1 int8 layers, such as "Conv_3"')
    expect(saturation?.fix).toMatch(/reduce_range.*float model.*session\.x64quantprecision/)
  })

  it.each([
    ['VNNI of AVX-512', processor('x64', 'avx2', 'avx512f', 'avx512_vnni')],
    ['VNNI of AVX', processor('x64', 'avx2', 'avx_vnni')],
    ['no AVX2', processor('x64', 'sse4_1', 'avx')],
    ['another architecture', processor('arm64', 'asimd', 'asimddp')],
    ['flags that are not known', processor('x64')],
  ])('has nothing to say on a processor with %s', (_, other) => {
    expect(saturationOf({ path: path(), config: emptyModelConfig }, other)).toBeUndefined()
  })

  it('has nothing to say of a model that is told to compute exactly', () => {
    const config = (value: string) =>
      parseModelConfig(
        `parameters { key: "session.x64quantprecision" value { string_value: "${value}" } }`,
        'config.pbtxt',
      )
    expect(saturationOf({ path: path(), config: config('1') }, zen3)).toBeUndefined()
    expect(saturationOf({ path: path(), config: config('0') }, zen3)).toBeDefined()
  })
})
