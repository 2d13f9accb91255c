import type { CameraConfig } from '../config/camera.js'
import type { FrameFormat } from '../vision/frame.js'
import { letterboxOf, scaledSizePx, type Letterbox, type SizePx } from '../vision/letterbox.js'
import { prints } from './decoder-log.js'
import { pixelExpressions, shownSize, type SentPicture } from './pixel-aspect.js'

type PlacePx = Readonly<{ x: number; y: number; widthPx: number; heightPx: number }>

/** How a picture of a given size is cut, scaled and padded for the model. */
export type PictureFit = Readonly<{
  /** The picture as it is shown, with square pixels. */
  source: SizePx
  /** The part that is analysed, in pixels of {@link PictureFit.source}. */
  regionPx: PlacePx
  /** The same in pixels as they are sent. */
  cutPx: PlacePx
  /** Size after scaling, before padding. */
  scaled: SizePx
  letterbox: Letterbox
}>

type Cut = Pick<CameraConfig, 'region' | 'maxWidthPx'>

/** Region edges lie on even pixels, because the chroma of camera video has half the resolution. */
const even = (value: number) => 2 * Math.floor(value / 2)

/** The box the picture is scaled into: the model input, or less where the camera caps its width. */
export function scaleLimit(camera: Cut, format: FrameFormat): SizePx {
  return {
    widthPx: Math.min(format.input.widthPx, camera.maxWidthPx ?? Infinity),
    heightPx: format.input.heightPx,
  }
}

/** The same arithmetic as the filter graph of {@link letterboxFilters}, for mapping boxes back. */
export function geometryOf(sent: SentPicture, camera: Cut, format: FrameFormat): PictureFit {
  const { region } = camera
  const { widthPx, heightPx, pixelAspect = 1 } = sent
  const cutPx = region
    ? {
        x: even(widthPx * region.x),
        y: even(heightPx * region.y),
        widthPx: Math.max(2, even(widthPx * region.width)),
        heightPx: Math.max(2, even(heightPx * region.height)),
      }
    : { x: 0, y: 0, widthPx, heightPx }
  const regionPx = {
    x: Math.round(cutPx.x * pixelAspect),
    y: cutPx.y,
    ...shownSize({ ...cutPx, pixelAspect }),
  }
  const limit = scaleLimit(camera, format)
  const scaled = scaledSizePx(regionPx, limit)
  const { scale } = letterboxOf(regionPx, limit, format.align)
  const center = format.align === 'center'
  return {
    source: shownSize(sent),
    regionPx,
    cutPx,
    scaled,
    letterbox: {
      scale,
      padXPx: center ? Math.floor((format.input.widthPx - scaled.widthPx) / 2) : 0,
      padYPx: center ? Math.floor((format.input.heightPx - scaled.heightPx) / 2) : 0,
    },
  }
}

/**
 * What a picture is scaled as: planes with at least the chroma of its own, RGB of more bits where it has more than eight. ffmpeg takes
 * the nearest. 4:2:0 becomes 4:2:2, since half the lines of a smaller picture are too few for the chroma there is.
 */
const scaledAs = 'yuv422p|yuvj422p|yuv444p|yuvj444p|gbrp10le|gbrp12le|rgb24'

/**
 * The geometry as an ffmpeg filter graph that ends in packed RGB of the model's input size. Where the shape of the pixels changes in the
 * middle of a stream it follows, and tells it.
 *
 * Planes are scaled, then converted. In one step swscale takes a slow way: 3.6 ms a frame of 720p at 800 x 450 in place of 0.9, and further
 * from accurate rounding (test/bench/pixels.bench.ts).
 */
export function letterboxFilters(camera: Cut, format: FrameFormat): string[] {
  const { w, h } = scaledSize(camera, format)
  // Read anew where pixels have another shape, not for each picture.
  const scale = `scale=w='${w}':h='${h}+0*${prints.pixels}':eval=frame:flags=bicubic`
  return [
    ...(camera.region ? [cropFilter(camera.region)] : []),
    scale,
    `format=${scaledAs}`,
    // The flag is for pictures of an odd height, which take the slow way all the same.
    'scale=eval=frame:flags=full_chroma_int',
    ...padded(format),
  ]
}

/**
 * The same for pictures that are on an NVIDIA card and are scaled there, of a camera without a region: on a card nothing is cut before it is
 * scaled. Where the shape of the pixels changes it does not follow, and tells it.
 *
 * Its `bilinear` weighs the pixels that a smaller one covers, up to three a side, where its `bicubic` takes four of them however many there
 * are. Chroma in full, since half of an odd height would lose a line on the way back.
 */
export function cardLetterboxFilters(camera: Cut, format: FrameFormat): string[] {
  const { w, h } = scaledSize(camera, format)
  return [
    `scale_cuda=w='${w}':h='${h}':interp_algo=bilinear:format=yuv444p`,
    'hwdownload',
    'format=yuv444p',
    `scale=w=iw:h='st(0,${pixelExpressions.parts});ih+0*${prints.pixels}':eval=frame:flags=full_chroma_int`,
    ...padded(format),
  ]
}

/** A whole picture with square pixels, no side of which is longer than `mostPx`; smaller ones keep their height. */
export function wholeFilters(mostPx: number): string[] {
  const { w, h } = sizeExpressions(`min(1,${fitting({ widthPx: mostPx, heightPx: mostPx })})`)
  return [`scale=w='${w}':h='${h}':flags=bicubic+accurate_rnd+full_chroma_int`, 'setsar=1']
}

function scaledSize(camera: Cut, format: FrameFormat): Readonly<{ w: string; h: string }> {
  return sizeExpressions(fitting(scaleLimit(camera, format)))
}

/** How much smaller a picture is that fits; behind {@link sizeExpressions}, where variable 1 holds the width that is shown. */
function fitting({ widthPx, heightPx }: SizePx): string {
  return `min(${widthPx}/ld(1),${heightPx}/ih)`
}

/** Expressions of its width and height; variable 0 holds the shape of the pixels behind either. */
function sizeExpressions(scale: string): Readonly<{ w: string; h: string }> {
  const shown = `st(0,${pixelExpressions.parts});st(1,${pixelExpressions.shownWidth('ld(0)')})`
  return { w: `${shown};max(1,round(ld(1)*${scale}))`, h: `${shown};max(1,round(ih*${scale}))` }
}

function padded({ input: { widthPx, heightPx }, align }: FrameFormat): string[] {
  const center = align === 'center'
  return [
    'format=rgb24',
    `pad=w=${widthPx}:h=${heightPx}:x=${center ? 'floor((ow-iw)/2)' : 0}:y=${center ? 'floor((oh-ih)/2)' : 0}:color=0x727272:eval=frame`,
  ]
}

function cropFilter(region: NonNullable<CameraConfig['region']>): string {
  const edge = (size: string, share: number) => `2*floor(${size}*${share}/2)`
  const w = `max(2\\,${edge('iw', region.width)})`
  const h = `max(2\\,${edge('ih', region.height)})`
  return `crop=w=${w}:h=${h}:x=${edge('iw', region.x)}:y=${edge('ih', region.y)}:exact=1`
}
