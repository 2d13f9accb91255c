import { leastPixelAspect, mostPixelAspect, ratioOf } from '../config/aspect-ratio.js'
import type { CameraConfig } from '../config/camera.js'
import type { SizePx } from '../vision/letterbox.js'

/** How a camera says itself how wide its picture is; that goes before what its stream says. */
export type SetAspect = Pick<CameraConfig, 'sampleAspectRatio' | 'displayAspectRatio'>

/** The size of a picture as it is sent. `pixelAspect`: how wide its pixels are for their height; absent: they are square. */
export type SentPicture = SizePx & Readonly<{ pixelAspect?: number }>

/** In ffmpeg's expressions a pixel's width is a whole number of such parts of its height, so that ours and its sums agree. */
const parts = 0x1_0000
/** Added where what is signalled is not believed. */
const unbelieved = 0x10_0000

/** Expressions of ffmpeg about the picture that a filter gets. */
export const pixelExpressions = {
  /** How wide a pixel is, for {@link readParts}. */
  parts: `if(between(sar,${leastPixelAspect},${mostPixelAspect}),round(sar*${parts}),${unbelieved + parts})`,
  /** Width of the picture with square pixels. @param of - expression or variable with {@link pixelExpressions.parts}. */
  shownWidth: (of: string) => `max(1,round(iw*mod(${of},${unbelieved})/${parts}))`,
} as const

/** What ffmpeg says about pixels. */
export type ToldAspect = Readonly<{
  pixelAspect: number
  /** It is beyond all that is believed, so that the pixels are taken for square. */
  isUnbelieved: boolean
}>

/** @param told - 0 where nothing is told. */
export function readParts(told: number): ToldAspect {
  return { pixelAspect: (told % unbelieved) / parts || 1, isUnbelieved: told >= unbelieved }
}

/** The picture as it is shown: as high as it is sent, as wide as its pixels make it. */
export function shownSize({ widthPx, heightPx, pixelAspect = 1 }: SentPicture): SizePx {
  return { widthPx: Math.max(1, Math.round(widthPx * pixelAspect)), heightPx }
}

/** Filters that lay what the camera is set to over what its stream says; they take pictures wherever they are. */
export function setAspectFilters({ sampleAspectRatio, displayAspectRatio }: SetAspect): string[] {
  if (sampleAspectRatio !== undefined) return [`setsar=r=${ratioOf(sampleAspectRatio)}:max=${parts}`]
  if (displayAspectRatio !== undefined) return [`setdar=r=${ratioOf(displayAspectRatio)}:max=${parts}`]
  return []
}

/**
 * The same for a picture that ffmpeg does not decode.
 *
 * @param sent - as it is shown, if it is turned.
 * @param signalled - what the picture itself says; `undefined` where it says nothing.
 */
export function toldAspect(sent: SizePx, camera: SetAspect, signalled: number | undefined): ToldAspect {
  const { sampleAspectRatio, displayAspectRatio } = camera
  const set =
    sampleAspectRatio !== undefined
      ? ratioOf(sampleAspectRatio)
      : displayAspectRatio !== undefined
        ? (ratioOf(displayAspectRatio) * sent.heightPx) / sent.widthPx
        : signalled
  if (set === undefined) return { pixelAspect: 1, isUnbelieved: false }
  const isBelieved = set >= leastPixelAspect && set <= mostPixelAspect
  return { pixelAspect: isBelieved ? Math.round(set * parts) / parts : 1, isUnbelieved: !isBelieved }
}

/** Why pixels are taken for square. @param said - what the stream or picture says about them, where that is known. */
export function unbelievedAspect(
  { displayAspectRatio }: SetAspect,
  sent: SizePx | undefined,
  said?: string,
): string {
  const isSquare = 'its pixels are taken for square'
  if (displayAspectRatio !== undefined && sent !== undefined)
    return `a picture of ${sent.widthPx}x${sent.heightPx} is not to be shown as ${displayAspectRatio} (displayAspectRatio): ${isSquare}`
  return `it says that its pixels have a shape that none have${said === undefined ? '' : ` (${said})`}: ${isSquare}`
}
