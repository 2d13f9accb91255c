import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import { decodePicture, type DecodedPicture } from '../../backends/image-decode/decode-picture.js'
import {
  frameElements,
  pixelArray,
  type PixelArray,
  type InputPlan,
  writeFrame,
} from '../../detector/input-tensor.js'
import { letterboxPicture } from '../../detector/letterbox/letterbox-picture.js'
import { installation } from '../../lifecycle/installation.js'
import { runTool } from '../../lifecycle/run-tool.js'
import { type ClipFrames, frameArguments } from '../../sources/ffmpeg-command.js'
import { probeVideo } from '../../sources/probe-video.js'
import type { FrameGeometry } from '../../detector/frame-geometry.js'
import { letterboxOf } from '../../vision/letterbox.js'
import { type FilmedCamera, keepCameraFrames } from './camera-frames.js'
import { ModelTransformError } from './transform-error.js'

const pictureNames = new Set(['.jpg', '.jpeg', '.png'])

/** Frames that are further apart are sought one by one, which is faster than to decode what is between them. */
const seekFromS = 1

/** Pictures as files, which are decoded when they are needed: as many as a network is calibrated on do not fit into memory. */
export type Pictures = Readonly<{
  paths: readonly string[]
  /** What they are, for people. */
  from: string
}>

/** A folder of pictures, a picture or a clip; or a camera. */
export type PictureOrigin = string | FilmedCamera

/** Where pictures are taken from, and where those of clips may be put. */
export type PictureSources = Readonly<{
  sources: readonly PictureOrigin[]
  count: number
  scratch: string
  signal?: AbortSignal | undefined
}>

/** The demo's clips, for models whose owner names no pictures. */
export function demoClips(): readonly string[] {
  const folder = join(installation, 'pipelines', 'demo', 'clips')
  return existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith('.mp4'))
        .map((name) => join(folder, name))
    : []
}

/**
 * Pictures, evenly over the sources and over the length of each.
 *
 * @throws ModelTransformError for a source that is not there, or has no picture
 */
export async function takePictures({ sources, count, scratch, signal }: PictureSources): Promise<Pictures> {
  const found = await Promise.all(
    sources.map(async (source, index) => {
      signal?.throwIfAborted()
      return picturesOf(
        typeof source === 'string' ? resolve(source) : source,
        Math.ceil(count / sources.length),
        join(scratch, `clip-${index}`),
        signal,
      )
    }),
  )
  // In turn, so that the first ones show all sources.
  const paths: string[] = []
  for (let at = 0; paths.length < count && found.some((each) => at < each.length); at++)
    for (const each of found) paths.push(...each.slice(at, at + 1))
  paths.length = Math.min(count, paths.length)
  return {
    paths,
    from: `${paths.length} pictures of ${sources.map((source) => (typeof source === 'string' ? source : `camera ${source.camera.id}`)).join(', ')}`,
  }
}

async function picturesOf(
  source: PictureOrigin,
  count: number,
  scratch: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  if (typeof source !== 'string') return keepCameraFrames(source, count, scratch, signal)
  const nothing = (why: string) =>
    new ModelTransformError(
      `${source} ${why}`,
      'Name a folder of JPEG or PNG pictures, a picture, or a clip.',
    )
  if (!existsSync(source)) throw nothing('is not there')
  if (statSync(source).isDirectory()) {
    const names = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((name) => pictureNames.has(extname(name).toLowerCase()))
      .sort()
    if (names.length === 0) throw nothing('has no pictures')
    return spread(names, count).map((name) => join(source, name))
  }
  if (pictureNames.has(extname(source).toLowerCase())) return [source]
  return framesOf(source, count, scratch, signal, nothing)
}

async function framesOf(
  clip: string,
  count: number,
  folder: string,
  signal: AbortSignal | undefined,
  nothing: (why: string) => Error,
): Promise<readonly string[]> {
  const facts = await probeVideo(clip).catch(() => undefined)
  if (facts === undefined) throw nothing('is neither a picture nor a clip that ffmpeg reads')
  mkdirSync(folder, { recursive: true })
  const durationS = facts.seconds ?? 0
  const keep = (frames: ClipFrames, name: string) =>
    runTool('ffmpeg', frameArguments(clip, frames, join(folder, name)), `frames of ${clip} cannot be kept`, {
      env: process.env,
      quiet: true,
      cwd: folder,
      signal,
    })
  const complaints: (string | undefined)[] = []
  if (durationS / count > seekFromS)
    for (let at = 0; at < count; at++)
      complaints.push(
        await keep({ atS: ((at + 0.5) * durationS) / count }, `${String(at).padStart(6, '0')}.png`),
      )
  else complaints.push(await keep({ perSecond: durationS > 0 ? count / durationS : 1, count }, '%06d.png'))
  const names = readdirSync(folder).sort()
  if (names.length === 0)
    throw nothing(`gives no frame: ${(complaints[0] ?? '').trim().split('\n').at(-1) ?? ''}`)
  return names.map((name) => join(folder, name))
}

/** Evenly spaced ones. */
function spread<T>(all: readonly T[], count: number): readonly T[] {
  if (all.length <= count) return all
  return Array.from({ length: count }, (_, at) => all[Math.floor(((at + 0.5) * all.length) / count)]!)
}

/** A picture as it enters a model, and where what is found in it lies in the picture. */
export type FedPicture = Readonly<{ values: PixelArray; geometry: FrameGeometry }>

/** @throws ModelTransformError for a picture that cannot be decoded */
export async function pictureAt(path: string): Promise<DecodedPicture> {
  try {
    return await decodePicture(await readFile(path))
  } catch (error) {
    throw new ModelTransformError(
      `${path}: ${error instanceof Error ? error.message : String(error)}`,
      'Leave the picture out, or save it again as JPEG or PNG.',
    )
  }
}

/** Fits a picture into a model's input as it is done for cameras. */
export async function feed(plan: InputPlan, picture: DecodedPicture): Promise<FedPicture> {
  const { size, align } = plan
  const { rgbHwc } = await letterboxPicture(picture.rgbHwc, picture, { ...plan })
  const bytes = Uint8Array.from(rgbHwc)
  const length = frameElements(plan)
  const values = new (pixelArray(plan.layout))(length)
  writeFrame(plan, bytes.buffer, values, 0)
  const { widthPx, heightPx } = picture
  return {
    values,
    geometry: {
      letterbox: letterboxOf(picture, size, align),
      regionPx: { x: 0, y: 0, widthPx, heightPx },
      source: { widthPx, heightPx },
    },
  }
}
