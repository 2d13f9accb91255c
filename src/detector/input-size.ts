import { ModelConfigError, ModelInvalidError } from '../repository/errors.js'
import { type GantryParameter, type ModelConfig, parameterOf } from '../repository/model-config.js'
import { describeTensor, type ModelTensor } from '../tensors/tensor.js'
import { scaledSizePx, type SizePx } from '../vision/letterbox.js'

/** A parameter that says how large a picture is where the model does not. */
export type SizeParameter = Extract<GantryParameter, 'gantry.input_size' | 'gantry.crop_size'>

/** The image input of a model, and what may say how large it is. */
export type SizedInput = Readonly<{
  /** Of the model. */
  name: string
  config: ModelConfig
  metadata: Readonly<Record<string, string>>
  tensor: ModelTensor
  /** Place of the height among the dimensions; the width is behind it. */
  heightAt: 1 | 2
}>

/** A size and, for people, what decided it. */
export type SizeChoice = Readonly<{ size: SizePx; from: string }>

/** What a model of free height and width says of them: the box that its pictures fit into, and what their sides are multiples of. */
export type FreeSize = Readonly<{ most: SizePx; stride: number }>

/** How large the analysed parts of the cameras' pictures are, as far as it is known when the service begins. */
export type CameraShapes = Readonly<{
  /** One for each camera that told it. */
  pictures: readonly SizePx[]
  /** Cameras there are. */
  cameras: number
}>

export const noCameraShapes: CameraShapes = { pictures: [], cameras: 0 }

/** What most cameras have. */
const usualShape: SizePx = { widthPx: 16, heightPx: 9 }

/** Coarsest cells of nearly every detector. */
const usualStride = 32

/**
 * Size of the input: from the model, else from the parameter, the configuration's dims, `given`, or the metadata of the exporter.
 *
 * @param given - by who knows better than the exporter where all others leave it open.
 * @throws ModelInvalidError, ModelConfigError
 */
export function inputSize(input: SizedInput, key: SizeParameter, given?: SizePx): SizeChoice {
  const { name, config, tensor, heightAt } = input
  const fromModel = sizeAt(tensor.shape, heightAt)
  const parameter = asksForRect(config, key) ? undefined : parameterOf(config, key)
  const hint =
    key === 'gantry.input_size'
      ? 'Write it like "640x640", or "rect" for the shape of the cameras.'
      : undefined
  const fromParameter = parameter === undefined ? undefined : parseSize(parameter, name, key, hint)
  if (fromModel !== undefined && fromParameter !== undefined && !sameSize(fromModel, fromParameter))
    throw new ModelConfigError(
      `model "${name}": ${key} is ${parameter}, but input "${tensor.name}" is ${describeTensor(tensor)}`,
      `Leave ${key} out: the size of this model is fixed.`,
    )
  if (fromModel !== undefined) return { size: fromModel, from: 'the model file' }
  if (fromParameter !== undefined) return { size: fromParameter, from: key }
  const fromDims = sizeAt(configuredDims(input), heightAt - 1)
  if (fromDims !== undefined) return { size: fromDims, from: 'dims of config.pbtxt' }
  if (given !== undefined) return { size: given, from: 'the cameras' }
  const exported = exportedSize(input)
  if (exported !== undefined) return { size: exported, from: 'imgsz of its metadata' }
  const strange = strangeSize(input)
  throw new ModelInvalidError(
    `model "${name}": input "${tensor.name}" ${describeTensor(tensor)} does not tell the size of its picture${strange === undefined ? '' : `, and ${strange}`}`,
    `Set parameters { key: "${key}" value { string_value: "640x640" } } in config.pbtxt.`,
  )
}

/** `WIDTHxHEIGHT`. @throws ModelConfigError with `fix` */
export function parseSize(
  text: string,
  model: string,
  key: SizeParameter = 'gantry.input_size',
  fix = 'Write it like "640x640".',
): SizePx {
  const match = /^(\d{2,5})x(\d{2,5})$/.exec(text)
  if (match === null)
    throw new ModelConfigError(`model "${model}": ${key} "${text}" is not WIDTHxHEIGHT`, fix)
  return { widthPx: Number(match[1]), heightPx: Number(match[2]) }
}

export function sameSize(a: SizePx, b: SizePx): boolean {
  return a.widthPx === b.widthPx && a.heightPx === b.heightPx
}

export function sizeText({ widthPx, heightPx }: SizePx): string {
  return `${widthPx}x${heightPx}`
}

/** Whether cameras are to decide the size, as far as the model leaves it open. */
export function asksForRect(config: ModelConfig, key: SizeParameter = 'gantry.input_size'): boolean {
  return key === 'gantry.input_size' && parameterOf(config, key) === 'rect'
}

/**
 * What a model leaves open, or what fixes height or width: the file, `dims`, one name for both (a square of any size), or the exporter's
 * word that only one size was meant. Without `imgsz` nobody knows how large it may be.
 */
export function freeSize(input: SizedInput): FreeSize | Readonly<{ fixedBy: string }> {
  const { metadata, tensor, heightAt } = input
  const [height, width] = tensor.shape.slice(heightAt, heightAt + 2)
  const most = exportedSize(input)
  if (typeof height === 'number' || typeof width === 'number' || (height === width && height !== '?'))
    return { fixedBy: `its input "${tensor.name}" is ${describeTensor(tensor)}` }
  if (
    configuredDims(input)
      .slice(heightAt - 1, heightAt + 1)
      .some((side) => side !== -1)
  )
    return { fixedBy: 'dims of config.pbtxt say a size' }
  if (isExportedForOneSize(metadata))
    return { fixedBy: 'its metadata says that it was exported for one size' }
  return most === undefined
    ? { fixedBy: strangeSize(input) ?? 'no imgsz in its metadata says how large it may be' }
    : { most, stride: strideOf(metadata) }
}

/**
 * The size that most cameras fill best: their shape in the box of the model, rounded up to its stride. Of several that are as frequent it
 * is the largest, and 16:9 where no camera is known.
 */
export function sizeForCameras(free: FreeSize, { pictures, cameras }: CameraShapes): SizeChoice {
  const counts = new Map<string, { size: SizePx; count: number }>()
  for (const picture of pictures.length === 0 ? [usualShape] : pictures) {
    const size = sizeOfShape(free, picture)
    const { count } = counts.get(sizeText(size)) ?? { count: 0 }
    counts.set(sizeText(size), { size, count: count + 1 })
  }
  const [{ size, count }] = [...counts.values()].sort(
    (a, b) => b.count - a.count || pixels(b.size) - pixels(a.size),
  ) as [{ size: SizePx; count: number }]
  const from =
    pictures.length === 0
      ? 'the usual 16:9, as no camera has told its shape'
      : `the shape of ${count} of ${cameras} camera${cameras === 1 ? '' : 's'}`
  return { size, from }
}

function sizeOfShape({ most, stride }: FreeSize, picture: SizePx): SizePx {
  const { widthPx, heightPx } = scaledSizePx(picture, most)
  const up = (side: number) => Math.ceil(side / stride) * stride
  return { widthPx: Math.min(most.widthPx, up(widthPx)), heightPx: Math.min(most.heightPx, up(heightPx)) }
}

function pixels({ widthPx, heightPx }: SizePx): number {
  return widthPx * heightPx
}

function sizeAt(shape: readonly (number | string)[], heightAt: number): SizePx | undefined {
  const [heightPx, widthPx] = shape.slice(heightAt, heightAt + 2)
  if (typeof heightPx !== 'number' || typeof widthPx !== 'number' || heightPx < 1 || widthPx < 1)
    return undefined
  return { widthPx, heightPx }
}

/** Those of the image, without a batch dimension. */
function configuredDims({ config, tensor }: SizedInput): readonly number[] {
  return (config.input.find((input) => input.name === tensor.name)?.dims ?? []).slice(-3)
}

/**
 * Exporters of the YOLO family write `imgsz`, height first: `[640, 640]`, `(640, 640)`, `640, 640`, or one number for both. Behind a batch
 * and the channels they are the last two.
 */
function exportedSize({ metadata: { imgsz = '' } }: SizedInput): SizePx | undefined {
  const [height, width] = namedSides.map((side) => side.exec(imgsz)?.[1])
  if (height !== undefined && width !== undefined) return { widthPx: Number(width), heightPx: Number(height) }
  const bare = imgsz.replace(/[[\](){}'"\s]+/g, ' ').trim()
  const square = /^(\d{2,5})\s*[x×*]\s*\1$/.exec(bare)?.[1]
  if (square !== undefined) return { widthPx: Number(square), heightPx: Number(square) }
  if (!/^\d+(?:\.0+)?(?:\s*[, ]\s*\d+(?:\.0+)?)*(?: ?,)?$/.test(bare)) return undefined
  const sides = (bare.match(/\d+(?:\.0+)?/g) ?? []).map(Number)
  const [heightPx = 0, widthPx = heightPx] = sides.slice(-2)
  return [1, 2, 4].includes(sides.length) && isSide(heightPx) && isSide(widthPx)
    ? { widthPx, heightPx }
    : undefined
}

/** `{"height": 640, "width": 640}`. */
const namedSides = [/\b(?:height|h)['"]?\s*[:=]\s*(\d{2,5})\b/i, /\b(?:width|w)['"]?\s*[:=]\s*(\d{2,5})\b/i]

function isSide(pixels: number): boolean {
  return pixels >= 10 && pixels <= 99_999
}

/** What stands in the metadata and is no size, for people. */
function strangeSize({ metadata: { imgsz = '' } }: SizedInput): string | undefined {
  return imgsz === ''
    ? undefined
    : `imgsz of its metadata, ${JSON.stringify(imgsz.slice(0, 60))}, is not understood`
}

/** They also write whether sizes were left free: `dynamic`, or the same in `args`, as Python prints it. */
function isExportedForOneSize({ dynamic = '', args = '' }: Readonly<Record<string, string>>): boolean {
  return /^\s*false\s*$/i.test(dynamic) || /['"]dynamic['"]\s*:\s*false/i.test(args)
}

/** `32`, or one for each grid. */
function strideOf({ stride = '' }: Readonly<Record<string, string>>): number {
  const strides = (stride.match(/\d+/g) ?? []).map(Number).filter((each) => each >= 1 && each <= 1_024)
  return strides.length === 0 ? usualStride : Math.max(...strides)
}
