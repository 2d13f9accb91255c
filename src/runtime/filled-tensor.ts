import { randomFillSync } from 'node:crypto'
import { type ConfigType, type Datatype, datatypeOfConfig, elementBytes } from '../tensors/element-type.js'
import { elementCount, type Tensor } from '../tensors/tensor.js'
import { ModelConfigError } from '../repository/errors.js'
import { inTurns, type Pieces } from '../lifecycle/in-turns.js'

/** A tensor of zeros, or of empty strings. @throws ModelConfigError for a type that is none */
export function filledTensor(name: string, dataType: ConfigType, shape: readonly number[]): Tensor {
  const datatype = datatypeOfConfig(dataType)
  if (datatype === undefined)
    throw new ModelConfigError(`input "${name}" has data type ${dataType}`, 'Set data_type in config.pbtxt.')
  // An empty string is its length, 0.
  const bytes = elementCount(shape) * (datatype === 'BYTES' ? 4 : elementBytes(datatype))
  return { name, datatype, shape, data: new Uint8Array(bytes) }
}

/** Random values of any kind of number: floats in 0..1, booleans, whole numbers over their range; strings are empty. */
export async function randomTensor(
  name: string,
  dataType: ConfigType,
  shape: readonly number[],
): Promise<Tensor> {
  const tensor = filledTensor(name, dataType, shape)
  if (tensor.datatype !== 'BYTES') await inTurns(randomPieces(tensor))
  return tensor
}

/** A multiple of all elements. Takes half a millisecond at most. */
const pieceBytes = 64 * 1024

function* randomPieces({ data, datatype }: Tensor): Pieces<void> {
  for (let at = 0; at < data.byteLength; at += pieceBytes) {
    fillRandomly(data.subarray(at, at + pieceBytes), datatype)
    yield
  }
}

function fillRandomly(data: Uint8Array, datatype: Datatype): void {
  const { buffer, byteOffset, byteLength } = data
  if (datatype === 'FP32') fillWithShares(new Float32Array(buffer, byteOffset, byteLength / 4))
  else if (datatype === 'FP64') fillWithShares(new Float64Array(buffer, byteOffset, byteLength / 8))
  else randomFillSync(data)
  if (datatype === 'BOOL') data.forEach((value, index) => (data[index] = value & 1))
  // Clears the exponent's highest bits, so that the value is finite and below 2.
  if (datatype === 'FP16' || datatype === 'BF16')
    for (let index = 1; index < data.length; index += 2) data[index] = data[index]! & 0x3b
}

function fillWithShares(values: Float32Array | Float64Array): void {
  for (let index = 0; index < values.length; index++) values[index] = Math.random()
}
