import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ModelInvalidError } from '../../src/repository/errors.js'
import { readOnnxFile } from '../../src/repository/onnx-file.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'

function written(bytes: Uint8Array): string {
  const path = join(tempDir(), 'model.onnx')
  writeFileSync(path, bytes)
  return path
}

describe('readOnnxFile', () => {
  it('reads tensors, opsets and metadata', () => {
    const bytes = redDetector('uint8-nhwc')
    expect(readOnnxFile(written(bytes))).toEqual({
      irVersion: 8,
      producer: 'gantry-tests',
      opsets: { '': 17 },
      inputs: [{ name: 'images', type: 'uint8', shape: ['batch', 64, 64, 3] }],
      outputs: [{ name: 'output0', type: 'float32', shape: ['batch', 6, 84] }],
      metadata: { names: "{0: 'blue', 1: 'red'}" },
      fileBytes: bytes.length,
    })
  })

  it('skips weights larger than its window, before and behind what it reads', () => {
    const weights = new Float32Array(200_000)
    const path = written(
      buildOnnx({
        inputs: [{ name: 'x', type: 'float32', shape: [200_000] }],
        outputs: [{ name: 'y', type: 'float32', shape: [200_000] }],
        nodes: [{ op: 'Add', inputs: ['x', 'w'], outputs: ['y'] }],
        constants: [
          { name: 'w', shape: [200_000], data: weights },
          { name: 'v', shape: [200_000], data: weights },
        ],
        metadata: { last: 'read' },
      }),
    )
    const info = readOnnxFile(path)
    expect(info.inputs.map((input) => input.name)).toEqual(['x'])
    expect(info.metadata).toEqual({ last: 'read' })
  })

  it('does not take weights for inputs where an old exporter lists them as such', () => {
    const path = written(
      buildOnnx({
        inputs: [{ name: 'x', type: 'float32', shape: [4] }],
        outputs: [{ name: 'y', type: 'float32', shape: [4] }],
        nodes: [{ op: 'Add', inputs: ['x', 'w'], outputs: ['y'] }],
        constants: [{ name: 'w', shape: [4], data: new Float32Array(4) }],
        constantsAsInputs: true,
      }),
    )
    expect(readOnnxFile(path).inputs).toEqual([{ name: 'x', type: 'float32', shape: [4] }])
  })

  it('refuses a file that is cut short', () => {
    const bytes = redDetector('uint8-nhwc')
    const path = written(bytes)
    for (let length = 0; length < bytes.length; length += 37) {
      writeFileSync(path, bytes.subarray(0, length))
      expect(() => readOnnxFile(path), `${length} bytes`).toThrow(ModelInvalidError)
    }
  })

  it.each([
    ['text', Buffer.from('this is not a model')],
    ['nothing', Buffer.alloc(0)],
    ['a length beyond the file', Buffer.from([0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f])],
    ['an endless varint', Buffer.alloc(64, 0xff)],
  ])('says that %s is no model', (_, bytes) => {
    expect(() => readOnnxFile(written(bytes))).toThrow('is not a readable ONNX model')
  })

  it('says that a missing file cannot be read', () => {
    expect(() => readOnnxFile('/nowhere/model.onnx')).toThrow('cannot read /nowhere/model.onnx')
  })
})
