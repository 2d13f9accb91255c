import { type ModelTensor, tensorTypes } from './tensor-type.js'
import { configDataType } from './tensor-type.js'
import { configOfDatatype } from './datatype.js'
import type { TensorSpec } from './tensor.js'

/** A tensor of a served model in the words of model files; free sizes are called `?`. */
export function modelTensorOf({ name, datatype, shape }: TensorSpec): ModelTensor {
  const dataType = configOfDatatype(datatype)
  const type =
    datatype === 'BF16' ? 'bfloat16' : tensorTypes.find((known) => configDataType(known) === dataType)
  return { name, type: type ?? 'other', shape: shape.map((size) => (size === -1 ? '?' : size)) }
}
