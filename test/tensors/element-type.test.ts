import ort from 'onnxruntime-node'
import { describe, expect, it } from 'vitest'
import {
  arrayOf,
  configOfDatatype,
  configOfOnnx,
  datatypeOfConfig,
  datatypeOfOnnx,
  datatypes,
  elementBytes,
  isArrayDatatype,
  isNumberDatatype,
  onnxNumberOf,
  onnxOfDatatype,
  onnxTypeOf,
} from '../../src/tensors/element-type.js'

describe('an element type', () => {
  it.each(datatypes)('%s is itself again by each of its names', (datatype) => {
    const onnx = onnxOfDatatype(datatype)
    expect(datatypeOfOnnx(onnx)).toBe(datatype)
    expect(datatypeOfConfig(configOfDatatype(datatype))).toBe(datatype)
    expect(configOfOnnx(onnx)).toBe(configOfDatatype(datatype))
    expect(onnxTypeOf(onnxNumberOf(onnx))).toBe(onnx)
  })

  it.each(datatypes.filter(isArrayDatatype))(
    '%s has arrays of its size, which ONNX Runtime takes',
    (datatype) => {
      const kind = arrayOf(datatype)
      expect(kind.BYTES_PER_ELEMENT).toBe(elementBytes(datatype))
      const type = onnxOfDatatype(datatype) as ort.Tensor.Type
      expect(new ort.Tensor(type, new kind(2), [2])).toMatchObject({ type, size: 2 })
    },
  )

  it('has no array where elements are no numbers or JavaScript has none for them', () => {
    expect(datatypes.filter((datatype) => !isArrayDatatype(datatype))).toEqual(['BF16', 'BYTES'])
    expect(datatypes.filter((datatype) => !isNumberDatatype(datatype))).toEqual(['FP16', 'BF16', 'BYTES'])
  })

  it('that has no name here is other, and invalid in a configuration', () => {
    expect(onnxTypeOf(14)).toBe('other')
    expect(onnxNumberOf('other')).toBe(0)
    expect(configOfOnnx('other')).toBe('TYPE_INVALID')
    expect([datatypeOfConfig('TYPE_INVALID'), datatypeOfConfig('FP32'), datatypeOfOnnx('complex64')]).toEqual(
      [undefined, undefined, undefined],
    )
  })
})
