import { randomFillSync } from 'node:crypto'
import type { DataType } from '../../inference/model-config.js'
import { elementCount } from '../../inference/tensor-type.js'
import { ModelConfigError } from '../../inference/errors.js'
import { datatypeOfConfig, elementBytes } from '../datatype.js'
import type { Tensor } from '../tensor.js'

/** A tensor of zeros, or of empty strings. @throws ModelConfigError for a type that is none */
export function filledTensor(name: string, dataType: DataType, shape: readonly number[]): Tensor {
  const datatype = datatypeOfConfig(dataType)
  if (datatype === undefined)
    throw new ModelConfigError(`input "${name}" has data type ${dataType}`, 'Set data_type in config.pbtxt.')
  // An empty string is its length, 0.
  const bytes = elementCount(shape) * (datatype === 'BYTES' ? 4 : elementBytes(datatype))
  return { name, datatype, shape, data: new Uint8Array(bytes) }
}

/** Random values of any kind of number: floats in 0..1, booleans, whole numbers over their range; strings are empty. */
export function randomTensor(name: string, dataType: DataType, shape: readonly number[]): Tensor {
  const tensor = filledTensor(name, dataType, shape)
  const { data, datatype } = tensor
  if (datatype === 'BYTES') return tensor
  if (datatype === 'FP32')
    new Float32Array(data.buffer).forEach((_, index, values) => (values[index] = Math.random()))
  else if (datatype === 'FP64')
    new Float64Array(data.buffer).forEach((_, index, values) => (values[index] = Math.random()))
  else randomFillSync(data)
  if (datatype === 'BOOL') data.forEach((value, index) => (data[index] = value & 1))
  // Clears the exponent's highest bits, so that the value is finite and below 2.
  if (datatype === 'FP16' || datatype === 'BF16')
    for (let index = 1; index < data.length; index += 2) data[index] = data[index]! & 0x3b
  return tensor
}
