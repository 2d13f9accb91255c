import ort from 'onnxruntime-node'
import { describe, expect, it } from 'vitest'
import { float16Bits, floatsOf } from '../../../src/tensors/elements.js'
import { ortTensor } from '../../../src/backends/onnxruntime/ort-tensor.js'
import { buildOnnx } from '../../support/onnx-builder.js'

const echo = buildOnnx({
  inputs: [{ name: 'in', type: 'float16', shape: ['batch', 3] }],
  outputs: [{ name: 'out', type: 'float16', shape: ['batch', 3] }],
  nodes: [{ op: 'Identity', inputs: ['in'], outputs: ['out'] }],
})
const bits = Uint16Array.from([0x3c00, 0xc000, 0x0001])

describe('ortTensor', () => {
  it('R21: passes float16 to a session, and back what it answered', async () => {
    const session = await ort.InferenceSession.create(echo)
    const first = await session.run({ in: ortTensor('float16', bits, [1, 3]) })
    const { type, data, dims } = first['out']!
    const second = await session.run({ in: ortTensor(type, data, dims) })
    expect(floatsOf(float16Bits(second['out']!.data as ArrayBufferView))).toEqual(
      Float32Array.from([1, -2, 2 ** -24]),
    )
    await session.release()
  })

  it('takes a part of a buffer', async () => {
    const session = await ort.InferenceSession.create(echo)
    const part = new Uint16Array(Uint16Array.from([0, ...bits]).buffer, 2, 3)
    const answer = await session.run({ in: ortTensor('float16', part, [1, 3]) })
    expect([...float16Bits(answer['out']!.data as ArrayBufferView)]).toEqual([...bits])
    await session.release()
  })
})
