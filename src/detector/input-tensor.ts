import { halfBits } from '../tensors/elements.js'
import type { LetterboxAlign, SizePx } from '../vision/letterbox.js'

/** How the model wants its pixels: element type and order of dimensions, batch first. */
export const inputLayouts = [
  'float32-nchw',
  'float32-nhwc',
  'float16-nchw',
  'float16-nhwc',
  'float64-nchw',
  'float64-nhwc',
  'uint8-nchw',
  'uint8-nhwc',
  'int8-nchw',
  'int8-nhwc',
] as const
export type InputLayout = (typeof inputLayouts)[number]

/** What enters the model: shape, order of colours, range of values, and where the picture lies in it. */
export type InputPlan = Readonly<{
  /** Name of the input. */
  name: string
  layout: InputLayout
  size: SizePx
  channels: 'rgb' | 'bgr'
  /** Of float values; bytes are always 0..255. */
  range: '0-1' | '0-255'
  align: LetterboxAlign
  /** What float values become: `(value - mean) / std`, for each channel in the tensor's order. */
  normalise?: Readonly<{ mean: readonly number[]; std: readonly number[] }>
  /** A further input that is told the size of the picture, as models of the DETR family have. */
  sizeInput?: SizeInput
}>

/** `[N, 2]`: width and height of the input in pixels, or height and width. */
export type SizeInput = Readonly<{
  name: string
  type: 'int64' | 'int32' | 'float32'
  order: 'wh' | 'hw'
}>

export type ElementType = 'float32' | 'float16' | 'float64' | 'uint8' | 'int8'

/** Element type of a layout. int8 is a byte minus 128. */
export function elementType(layout: InputLayout): ElementType {
  return layout.slice(0, layout.indexOf('-')) as ElementType
}

/** Elements of an image input: of float16 their bits, of int8 bytes. */
export type PixelArray = Float32Array | Float64Array | Uint16Array | Uint8Array

const pixelArrays = {
  float32: Float32Array,
  float16: Uint16Array,
  float64: Float64Array,
  uint8: Uint8Array,
  int8: Uint8Array,
} as const

/** The array that elements of a layout are written into. */
export function pixelArray(layout: InputLayout): (typeof pixelArrays)[ElementType] {
  return pixelArrays[elementType(layout)]
}

/** Whether the colours of a pixel stand beside each other. */
export function isInterleaved(layout: InputLayout): boolean {
  return layout.endsWith('nhwc')
}

/** Shape of the tensor. */
export function inputShape(
  { layout, size }: Pick<InputPlan, 'layout' | 'size'>,
  batchSize: number,
): number[] {
  return isInterleaved(layout)
    ? [batchSize, size.heightPx, size.widthPx, 3]
    : [batchSize, 3, size.heightPx, size.widthPx]
}

/** Elements of one frame in the tensor. */
export function frameElements({ size }: InputPlan): number {
  return size.widthPx * size.heightPx * 3
}

/** Whether the bytes of a frame are the tensor as they are. */
export function isFrameItself(plan: InputPlan): boolean {
  return plan.layout === 'uint8-nhwc' && plan.channels === 'rgb'
}

/** What becomes of a byte of each colour of the picture: red, green, blue. */
type Tables = readonly [Float32Array, Float32Array, Float32Array]

const tablesOfPlan = new WeakMap<InputPlan, Tables>()

function tablesFor(plan: InputPlan): Tables {
  const known = tablesOfPlan.get(plan)
  if (known !== undefined) return known
  const channel = (colour: number) => (plan.channels === 'bgr' ? 2 - colour : colour)
  const table = (colour: number) =>
    Float32Array.from({ length: 256 }, (_, byte) => valueOf(plan, byte, channel(colour)))
  const tables: Tables = [table(0), table(1), table(2)]
  tablesOfPlan.set(plan, tables)
  return tables
}

function valueOf({ layout, range, normalise }: InputPlan, byte: number, channel: number): number {
  const floatOf = (value: number) => {
    const scaled = range === '0-1' ? value / 255 : value
    return (scaled - (normalise?.mean[channel] ?? 0)) / (normalise?.std[channel] ?? 1)
  }
  switch (elementType(layout)) {
    case 'uint8':
      return byte
    case 'int8':
      // Two's complement of byte - 128.
      return byte ^ 0x80
    case 'float16':
      return halfBits(floatOf(byte))
    case 'float32':
    case 'float64':
      return floatOf(byte)
    default:
      return layout as never
  }
}

/**
 * Writes a frame into the model's input.
 *
 * @param rgbHwc - uint8 `[heightPx, widthPx, 3]`, RGB, of the plan's size. Borrowed for the call.
 * @param out - the tensor's data, a {@link pixelArray}; `frameElements` elements from `at` are overwritten.
 */
export function writeFrame(plan: InputPlan, rgbHwc: ArrayBuffer, out: PixelArray, at: number): void {
  const swap = plan.channels === 'bgr'
  if (isFrameItself(plan)) out.set(new Uint8Array(rgbHwc), at)
  else if (isInterleaved(plan.layout)) toPixels(rgbHwc, out, at, swap, tablesFor(plan))
  else toPlanes(rgbHwc, plan.size.widthPx * plan.size.heightPx, out, at, swap, tablesFor(plan))
}

/**
 * Interleaved bytes to planes, through a table.
 *
 * Reads four pixels as three 32-bit words: 0.56 ms for 640x640 against 1.3 ms byte by byte. Every platform Node runs on is
 * little-endian.
 */
function toPlanes(
  rgbHwc: ArrayBuffer,
  pixels: number,
  out: PixelArray,
  at: number,
  swap: boolean,
  [red, grn, blu]: Tables,
): void {
  const words = new Uint32Array(rgbHwc, 0, (rgbHwc.byteLength - (rgbHwc.byteLength % 4)) / 4)
  let first = swap ? at + 2 * pixels : at
  let green = at + pixels
  let third = swap ? at : at + 2 * pixels
  const quads = pixels >> 2
  for (let quad = 0, w = 0; quad < quads; quad++, w += 3, first += 4, green += 4, third += 4) {
    const a = words[w]!
    const b = words[w + 1]!
    const c = words[w + 2]!
    out[first] = red[a & 255]!
    out[green] = grn[(a >>> 8) & 255]!
    out[third] = blu[(a >>> 16) & 255]!
    out[first + 1] = red[a >>> 24]!
    out[green + 1] = grn[b & 255]!
    out[third + 1] = blu[(b >>> 8) & 255]!
    out[first + 2] = red[(b >>> 16) & 255]!
    out[green + 2] = grn[b >>> 24]!
    out[third + 2] = blu[c & 255]!
    out[first + 3] = red[(c >>> 8) & 255]!
    out[green + 3] = grn[(c >>> 16) & 255]!
    out[third + 3] = blu[c >>> 24]!
  }
  const bytes = new Uint8Array(rgbHwc)
  for (let pixel = quads * 4; pixel < pixels; pixel++) {
    out[first++] = red[bytes[pixel * 3]!]!
    out[green++] = grn[bytes[pixel * 3 + 1]!]!
    out[third++] = blu[bytes[pixel * 3 + 2]!]!
  }
}

/** Interleaved bytes to interleaved values. */
function toPixels(
  rgbHwc: ArrayBuffer,
  out: PixelArray,
  at: number,
  swap: boolean,
  [red, green, blue]: Tables,
): void {
  const rgb = new Uint8Array(rgbHwc)
  const first = swap ? at + 2 : at
  const third = swap ? at : at + 2
  for (let i = 0; i + 2 < rgb.length; i += 3) {
    out[first + i] = red[rgb[i]!]!
    out[at + i + 1] = green[rgb[i + 1]!]!
    out[third + i] = blue[rgb[i + 2]!]!
  }
}
