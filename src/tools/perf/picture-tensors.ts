import { elementBytes } from '../../tensors/element-type.js'
import { halfBits, packStrings } from '../../tensors/elements.js'
import { elementCount, type Tensor } from '../../tensors/tensor.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { ShapedInput } from './input-data.js'
import { PerfSettingError } from './perf-errors.js'

/** How an input holds pictures: as pixels in one of two layouts, or as encoded files. */
export type PictureInput = Readonly<{
  input: ShapedInput
  /** Undefined: encoded pictures. */
  pixels: Readonly<{ size: SizePx; planar: boolean }> | undefined
  /** Pictures in a request. */
  count: number
}>

const pixelTypes = new Set(['UINT8', 'FP32', 'FP16'])

/**
 * The input of a model that takes pictures: the only one of three channels, else the only one of texts.
 *
 * @throws PerfSettingError where there is none, or several.
 */
export function pictureInput(inputs: readonly ShapedInput[]): PictureInput {
  const ofPixels = inputs.flatMap((input) => pixelInput(input) ?? [])
  const encoded = inputs
    .filter(({ datatype }) => datatype === 'BYTES')
    .map((input) => ({ input, pixels: undefined, count: elementCount(input.shape) }))
  const [found, ...others] = ofPixels.length > 0 ? ofPixels : encoded
  if (found !== undefined && others.length === 0) return found
  throw new PerfSettingError(
    found === undefined
      ? 'the model has no input for pictures'
      : `the model has several inputs for pictures: ${[found, ...others].map(({ input }) => input.name).join(', ')}`,
    'Pictures go into UINT8, FP32 or FP16 of three channels, or BYTES; name a data file with --input-data, or random.',
  )
}

function pixelInput(input: ShapedInput): PictureInput | undefined {
  const { datatype, shape } = input
  const [a = 0, b = 0, c = 0] = shape.slice(-3)
  if (!pixelTypes.has(datatype) || shape.length < 3 || shape.length > 4) return undefined
  const planar = a === 3 && c !== 3
  if (!planar && c !== 3) return undefined
  const size = planar ? { widthPx: c, heightPx: b } : { widthPx: b, heightPx: a }
  return { input, pixels: { size, planar }, count: shape.length === 4 ? shape[0]! : 1 }
}

/**
 * A tensor of frames: bytes as they are, floats in 0..1.
 *
 * @param frames - uint8 RGB `[heightPx, widthPx, 3]` of the input's size, as many as it takes. Borrowed.
 */
export function frameTensor({ input, pixels }: PictureInput, frames: readonly Uint8Array[]): Tensor {
  const { name, datatype, shape } = input
  const { size, planar } = pixels!
  const pixelCount = size.widthPx * size.heightPx
  const data = new Uint8Array(elementCount(shape) * elementBytes(datatype))
  const values =
    datatype === 'UINT8'
      ? data
      : datatype === 'FP32'
        ? new Float32Array(data.buffer)
        : new Uint16Array(data.buffer)
  const valueOf = datatype === 'UINT8' ? bytes : datatype === 'FP32' ? floats : halves
  frames.forEach((frame, index) => {
    const start = index * pixelCount * 3
    if (!planar) for (let at = 0; at < pixelCount * 3; at++) values[start + at] = valueOf[frame[at]!]!
    else
      for (let channel = 0; channel < 3; channel++)
        for (let at = 0; at < pixelCount; at++)
          values[start + channel * pixelCount + at] = valueOf[frame[at * 3 + channel]!]!
  })
  return { name, datatype, shape, data }
}

/** A tensor of encoded pictures. */
export function encodedTensor({ input }: PictureInput, pictures: readonly Uint8Array[]): Tensor {
  return { name: input.name, datatype: 'BYTES', shape: input.shape, data: packStrings(pictures) }
}

/** What a byte of a picture is in each type of element. */
const bytes = Uint8Array.from({ length: 256 }, (_, value) => value)
const floats = Float32Array.from({ length: 256 }, (_, value) => value / 255)
const halves = Uint16Array.from(floats, (value) => halfBits(value))
