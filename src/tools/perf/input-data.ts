import { arrayOf, configOfDatatype, type Datatype } from '../../tensors/element-type.js'
import { packStrings } from '../../tensors/elements.js'
import { filledTensor } from '../../runtime/filled-tensor.js'
import { dataOf, elementCount, type Tensor, type TensorSpec } from '../../tensors/tensor.js'
import type { ServedConfig, ModelFacts } from '../client/kserve-client.js'
import { PerfSettingError } from './perf-errors.js'

/** An input with the shape that requests have, batch included. */
export type ShapedInput = Readonly<{ name: string; datatype: Datatype; shape: readonly number[] }>

export type ShapeSettings = Readonly<{
  /** Rows of a request; 1 for a model without a batch dimension. */
  batchSize: number
  /** Sizes of inputs without the batch dimension, by name. */
  shapes: ReadonlyMap<string, readonly number[]>
}>

/** Reads `name:d1,d2,...`. @throws PerfSettingError */
export function shapeOption(text: string): readonly [name: string, sizes: readonly number[]] {
  const [, name, list = ''] = /^(.+):(\d+(?:,\d+)*)$/.exec(text) ?? []
  const sizes = list.split(',').map(Number)
  if (name === undefined || sizes.some((size) => !Number.isInteger(size) || size < 0 || size > 2 ** 31))
    throw new PerfSettingError(
      `--shape ${text}: it is no shape`,
      'Write --shape NAME:D1,D2,... without the batch dimension.',
    )
  return [name, sizes]
}

/**
 * The inputs of requests: free sizes are those that were given, and the batch.
 *
 * @param config - undefined of a server that tells none: the first free size is then taken for a batch.
 * @throws PerfSettingError for a free size that nobody named, a shape that does not fit, and a batch that the model does not take.
 */
export function shapedInputs(
  { name: model, inputs }: Pick<ModelFacts, 'name' | 'inputs'>,
  config: ServedConfig | undefined,
  { batchSize, shapes }: ShapeSettings,
): readonly ShapedInput[] {
  for (const named of shapes.keys())
    if (!inputs.some(({ name }) => name === named))
      throw new PerfSettingError(
        `--shape ${named}: model "${model}" has no such input`,
        `Its inputs are ${inputs.map(({ name }) => name).join(', ')}.`,
      )
  if (config !== undefined && batchSize > Math.max(1, config.maxBatchSize))
    throw new PerfSettingError(
      `-b ${batchSize}: model "${model}" takes ${config.maxBatchSize === 0 ? 'no batches' : `at most ${config.maxBatchSize}`}`,
      'Name a smaller batch, or raise max_batch_size of the model.',
    )
  return inputs
    .filter(({ optional }) => optional !== true)
    .map((input) => ({
      name: input.name,
      datatype: input.datatype,
      shape: shapeOf(
        model,
        input,
        isBatched(input, config, batchSize, shapes.get(input.name)),
        batchSize,
        shapes.get(input.name),
      ),
    }))
}

function isBatched(
  { shape }: TensorSpec,
  config: ServedConfig | undefined,
  batchSize: number,
  given: readonly number[] | undefined,
): boolean {
  if (config !== undefined) return config.maxBatchSize > 0
  // What is left of it when the sizes that were named are taken away.
  return shape[0] === -1 && (given === undefined ? batchSize > 1 : given.length === shape.length - 1)
}

function shapeOf(
  model: string,
  { name, shape }: TensorSpec,
  batched: boolean,
  batchSize: number,
  given: readonly number[] | undefined,
): readonly number[] {
  const own = batched ? shape.slice(1) : shape
  const sizes = given ?? own
  const fits = sizes.length === own.length && own.every((size, axis) => size === -1 || size === sizes[axis])
  if (!fits)
    throw new PerfSettingError(
      `--shape ${name}:${sizes.join(',')}: input "${name}" of model "${model}" is [${own.join(', ')}]`,
      'Name a size for each dimension but the batch; only those that are -1 are free.',
    )
  if (sizes.includes(-1))
    throw new PerfSettingError(
      `input "${name}" of model "${model}" is [${own.join(', ')}]: its free sizes are not known`,
      `Name them: --shape ${name}:${own.map((size) => (size === -1 ? 'N' : size)).join(',')}`,
    )
  return batched ? [batchSize, ...sizes] : sizes
}

/** Elements of zero; BYTES are empty texts. */
export function zeroTensor({ name, datatype, shape }: ShapedInput): Tensor {
  return filledTensor(name, configOfDatatype(datatype), shape)
}

/** Letters of a made up text. */
const textLength = 128

/**
 * Made up elements, the same for the same numbers: floats in 0..1, bytes of all values, whole numbers of their type, truth values, texts
 * of 128 letters.
 *
 * @param random - in `[0, 1)`.
 */
export function seededTensor({ name, datatype, shape }: ShapedInput, random: () => number): Tensor {
  const length = elementCount(shape)
  return { name, datatype, shape, data: randomData(datatype, length, random) }
}

function randomData(datatype: Datatype, length: number, random: () => number): Uint8Array {
  switch (datatype) {
    case 'BYTES': {
      const letter = () => 97 + Math.floor(random() * 26)
      return packStrings(Array.from({ length }, () => Uint8Array.from({ length: textLength }, letter)))
    }
    case 'BOOL':
      return Uint8Array.from({ length }, () => (random() < 0.5 ? 0 : 1))
    case 'FP32':
      return dataOf(Float32Array.from({ length }, random))
    case 'FP64':
      return dataOf(Float64Array.from({ length }, random))
    case 'FP16':
      // Bits of numbers from 2^-14 to 1: any exponent below that of 1.
      return dataOf(Uint16Array.from({ length }, () => 0x0400 + Math.floor(random() * (0x3c00 - 0x0400))))
    case 'BF16':
      return dataOf(Uint16Array.from({ length }, () => 0x3e00 + Math.floor(random() * 0x180)))
    default: {
      const bytes = new Uint8Array(length * arrayOf(datatype).BYTES_PER_ELEMENT)
      // Indices of something are small; a byte is any.
      const width = arrayOf(datatype).BYTES_PER_ELEMENT
      for (let at = 0; at < bytes.length; at += width)
        bytes[at] = Math.floor(random() * (width === 1 ? 256 : 64))
      return bytes
    }
  }
}
