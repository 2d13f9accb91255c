import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { elementBytes } from '../../tensors/element-type.js'
import { packStrings } from '../../tensors/elements.js'
import { elementCount, type Tensor } from '../../tensors/tensor.js'
import { seededRandom } from './arrivals.js'
import { framesOf } from './clip-frames.js'
import { readDataFile } from './data-file.js'
import { seededTensor, type ShapedInput, zeroTensor } from './input-data.js'
import { PerfSettingError } from './perf-errors.js'
import { encodedTensor, frameTensor, pictureInput } from './picture-tensors.js'

/** Different requests made of a clip; each is held in memory. */
const clipRequests = 16
/** Most that they may have together. */
const mostBytes = 256 * 1024 ** 2

export type InputSettings = Readonly<{
  /** `zeros`, `random`, or a path: a data file (`.json`), a folder with a file for each input, a picture, a folder of pictures, a video. */
  data: string
  seed: number
  /** Undefined: the model has no batch dimension. */
  batchSize: number | undefined
}>

const pictureName = /\.(jpe?g|png)$/i

/**
 * The inputs of the requests of a load, at least one, each different where the data is.
 *
 * @throws PerfSettingError `GANTRY_USAGE` for data that is not there, or does not fit the inputs.
 */
export async function requestInputs(
  inputs: readonly ShapedInput[],
  { data, seed, batchSize }: InputSettings,
  signal: AbortSignal,
): Promise<readonly (readonly Tensor[])[]> {
  if (data === 'zeros') return [inputs.map(zeroTensor)]
  if (data === 'random') {
    const random = seededRandom(seed)
    return [inputs.map((input) => seededTensor(input, random))]
  }
  if (!existsSync(data))
    throw new PerfSettingError(
      `--input-data ${data}: there is no such file`,
      'Write zeros, random, or a path.',
    )
  if (/\.json$/i.test(data)) return readDataFile(data, inputs, batchSize)
  const isFolder = statSync(data).isDirectory()
  if (isFolder && inputs.every(({ name }) => existsSync(join(data, name))))
    return [inputs.map((input) => fileTensor(join(data, input.name), input, batchSize))]
  return ofPictures(inputs, data, isFolder, signal)
}

/** One file has the bytes of an input without its batch dimension; those of BYTES are one element. */
function fileTensor(
  path: string,
  { name, datatype, shape }: ShapedInput,
  batchSize: number | undefined,
): Tensor {
  const bytes = readFileSync(path)
  const rows = batchSize ?? 1
  const each = elementCount(shape) / rows
  const row = datatype === 'BYTES' && each === 1 ? packStrings([bytes]) : bytes
  const wanted = each * elementBytes(datatype)
  if (datatype !== 'BYTES' && row.byteLength !== wanted)
    throw new PerfSettingError(
      `--input-data ${path}: it has ${row.byteLength} bytes, and a row of input "${name}" has ${wanted}`,
      'A file holds the elements as they lie in memory, little-endian, without the batch dimension.',
    )
  return { name, datatype, shape, data: Buffer.concat(Array.from({ length: rows }, () => row)) }
}

async function ofPictures(
  inputs: readonly ShapedInput[],
  data: string,
  isFolder: boolean,
  signal: AbortSignal,
): Promise<readonly (readonly Tensor[])[]> {
  const picture = pictureInput(inputs)
  const others = inputs.filter((input) => input !== picture.input).map(zeroTensor)
  const inOrder = (tensor: Tensor) =>
    inputs.map(({ name }) => (name === tensor.name ? tensor : others.find((other) => other.name === name)!))
  if (picture.pixels === undefined)
    return inTurn(encodedPictures(data, isFolder), picture.count).map((some) =>
      inOrder(encodedTensor(picture, some)),
    )
  const { widthPx, heightPx } = picture.pixels.size
  const requestBytes = elementCount(picture.input.shape) * elementBytes(picture.input.datatype)
  const requests = Math.max(1, Math.min(clipRequests, Math.floor(mostBytes / requestBytes)))
  const isOne = !isFolder && pictureName.test(data)
  const count = isOne ? 1 : requests * picture.count
  const frames = await framesOf(data, { widthPx, heightPx }, count, signal)
  return inTurn(frames, picture.count).map((some) => inOrder(frameTensor(picture, some)))
}

function encodedPictures(data: string, isFolder: boolean): readonly Uint8Array[] {
  const files = isFolder
    ? readdirSync(data)
        .filter((name) => pictureName.test(name))
        .sort()
        .slice(0, clipRequests)
        .map((name) => join(data, name))
    : [data]
  if (files.length === 0 || files.some((file) => !pictureName.test(file)))
    throw new PerfSettingError(
      `--input-data ${data}: the model takes encoded pictures`,
      'Name a JPEG or PNG, or a folder of them.',
    )
  return files.map((file) => readFileSync(file))
}

/** So many at a time, from the first again for the rest of the last. */
function inTurn<T>(all: readonly T[], count: number): readonly (readonly T[])[] {
  const groups = Math.ceil(all.length / count)
  return Array.from({ length: groups }, (_, group) =>
    Array.from({ length: count }, (__, index) => all[(group * count + index) % all.length]!),
  )
}
