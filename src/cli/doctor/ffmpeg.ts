import { parseDecoderLine } from '../../sources/decoder-log.js'
import { listingArguments, openDeviceArguments, tellingArguments } from '../../sources/ffmpeg-command.js'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { systemLimit } from '../../lifecycle/system-limit.js'
import type { Finding } from '../findings.js'
import { programOutput } from '../../lifecycle/program-output.js'
import { filtersIn } from '../../sources/ffmpeg-filters.js'

const install = 'sudo apt-get install ffmpeg'

/** What the decoders of the cameras use, as `ffmpeg` lists it. */
const needed = {
  protocols: ['file', 'http', 'https', 'tcp', 'udp', 'rtp', 'tls'],
  demuxers: ['rtsp', 'hls', 'mov,mp4,m4a,3gp,3g2,mj2'],
  decoders: ['h264', 'hevc', 'mjpeg'],
  filters: ['crop', 'fps', 'pad', 'scale', 'select'],
} as const
type Listing = keyof typeof needed
const accelerators = ['cuda', 'vaapi'] as const

/** Words of an `ffmpeg -filters` kind of listing that lack. */
export function missingFrom(listing: string, names: readonly string[]): string[] {
  const words = new Set(listing.split(/\s+/))
  return names.filter((name) => !words.has(name))
}

/** `5.1.9-0+deb12u1` of the first line of `ffmpeg -version`. */
export function ffmpegVersion(output: string): string | undefined {
  return /^ffmpeg version (\S+)/m.exec(output)?.[1]
}

export async function examineFfmpeg(): Promise<Finding[]> {
  const output = await programOutput('ffmpeg', listingArguments('version'))
  const version = output && ffmpegVersion(output)
  if (!version) return [missing('ffmpeg')]
  const lacks = await Promise.all(
    (Object.keys(needed) as Listing[]).map(async (listing) => {
      const text = (await programOutput('ffmpeg', listingArguments(listing))) ?? ''
      return missingFrom(text, needed[listing]).map((name) => `${listing.slice(0, -1)} ${name}`)
    }),
  )
  const lacking = [...lacks.flat(), ...((await tellsOfPictures()) ? [] : ['times and sizes of pictures'])]
  return [
    lacking.length === 0
      ? { subject: 'ffmpeg', state: 'ok', detail: `${version}, every protocol and filter needed` }
      : {
          subject: 'ffmpeg',
          state: 'failed',
          detail: `${version} lacks ${lacking.join(', ')}`,
          fix: install,
        },
    await examineFfprobe(),
    await examineHardwareDecoding(),
  ]
}

/** Whether Gantry understands what it says of pictures: without that it takes none, however well they are decoded. */
async function tellsOfPictures(): Promise<boolean> {
  const output = (await programOutput('ffmpeg', tellingArguments())) ?? ''
  const kinds = output.split(/\r?\n/).map((line) => parseDecoderLine(line).kind)
  return kinds.includes('picture') && kinds.includes('size')
}

/** A program that does not run: is it there, and may not be started? */
function missing(program: string): Finding {
  const reasons = (process.env.PATH ?? '').split(delimiter).map((dir) => whyNotRun(join(dir, program)))
  const limit = reasons.find((reason) => reason !== undefined)
  return {
    subject: program,
    state: 'failed',
    detail: limit === undefined ? 'not found' : `cannot be started: ${limit.reason}`,
    fix: limit?.hint ?? install,
  }
}

function whyNotRun(path: string): ReturnType<typeof systemLimit> {
  try {
    accessSync(path, constants.X_OK)
    return undefined
  } catch (error) {
    return systemLimit(error)
  }
}

async function examineFfprobe(): Promise<Finding> {
  const found = await programOutput('ffprobe', listingArguments('version'))
  if (found) return { subject: 'ffprobe', state: 'ok', detail: 'found' }
  return missing('ffprobe')
}

/** Whether a device opens for one of the accelerators that cameras can ask for and this build knows. */
export async function examineHardwareDecoding(ask = programOutput): Promise<Finding> {
  const subject = 'hardware decoding'
  const listing = (await ask('ffmpeg', listingArguments('hwaccels'))) ?? ''
  const built = accelerators.filter((name) => missingFrom(listing, [name]).length === 0)
  if (built.length === 0)
    return {
      subject,
      state: 'warning',
      detail: 'none built into ffmpeg: cameras are decoded in software',
      fix: install,
    }
  const opened = await Promise.all(
    built.map(async (name) => (await ask('ffmpeg', openDeviceArguments(name))) !== undefined),
  )
  const usable = built.filter((_, index) => opened[index])
  if (usable.length > 0)
    return {
      subject,
      state: 'ok',
      detail: `a device opens for ${usable.join(', ')}; a camera asks for it with hwaccel${usable.includes('cuda') ? await scalingText(ask) : ''}`,
    }
  return {
    subject,
    state: 'warning',
    detail: `built for ${built.join(', ')}, but no device opens: cameras are decoded in software`,
    fix: 'install the driver of the card (Debian: va-driver-all or nvidia-driver), or leave hwaccel at none',
  }
}

/** Where pictures are scaled that a card has decoded. */
async function scalingText(ask: typeof programOutput): Promise<string> {
  const filters = filtersIn((await ask('ffmpeg', listingArguments('filters'))) ?? '')
  return filters.includes('scale_cuda')
    ? '; this ffmpeg has scale_cuda: pictures are scaled on the card'
    : '; this ffmpeg has no filter scale_cuda: pictures that the card decodes are scaled in software'
}
