import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ort from 'onnxruntime-node'
import { expect, it, onTestFinished, vi } from 'vitest'
import { OrtModel } from '../../../src/backends/onnxruntime/ort-model.js'
import { buildOnnx, elementTypes, type ElementType } from '../../support/onnx-builder.js'
import { tempDir } from '../../support/temp-dir.js'

/** Gives its input as elements of that type. */
function cast(type: ElementType): Uint8Array {
  return buildOnnx({
    inputs: [{ name: 'in', type: 'float32', shape: ['batch', 2] }],
    outputs: [{ name: 'out', type, shape: ['batch', 2] }],
    nodes: [{ op: 'Cast', inputs: ['in'], outputs: ['out'], attributes: { to: elementTypes[type] } }],
  })
}

/** Of float16 the bits. */
const halves: Readonly<Record<number, number>> = { 0: 0, 1: 0x3c00, 3: 0x4200, 5: 0x4500 }

it.each(Object.keys(elementTypes).filter((type) => !['string', 'bfloat16'].includes(type)) as ElementType[])(
  'an output of type %s is written over by the next run',
  async (type) => {
    const path = join(tempDir(), 'model.onnx')
    writeFileSync(path, cast(type))
    const model = await OrtModel.open(
      {
        path,
        providers: ['cpu'],
        deviceId: 0,
        intraOpThreads: 1,
        graphOptimization: 'all',
        sessionConfig: {},
      },
      { names: ['out'], sizeIsKnown: false },
    )
    onTestFinished(() => model.release())
    const inside = vi.spyOn(model.session, 'run')
    const run = async (values: readonly number[]) => {
      const tensor = new ort.Tensor('float32', Float32Array.from(values), [1, 2])
      return (await model.run([{ name: 'in', tensor }], 1)).out!
    }
    const bits = ({ data }: ort.Tensor) =>
      type === 'float16'
        ? [...new Uint16Array((data as Uint16Array).buffer)]
        : [...(data as Float32Array)].map(Number)
    const expected = (values: readonly number[]) =>
      values.map((value) =>
        type === 'float16' ? halves[value] : type === 'bool' ? Number(value > 0) : value,
      )
    expect(bits(await run([1, 3]))).toEqual(expected([1, 3]))
    const second = await run([0, 5])
    expect(bits(second)).toEqual(expected([0, 5]))
    const third = await run([3, 1])
    expect(third).toBe(second)
    expect(bits(third)).toEqual(expected([3, 1]))
    const made = (await inside.mock.results.at(-1)!.value) as ort.InferenceSession.OnnxValueMapType
    expect(made.out === third || (made.out!.data as Uint8Array).byteLength === 0).toBe(true)
  },
)
