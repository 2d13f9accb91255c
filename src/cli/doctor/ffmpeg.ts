import type { Finding } from '../findings.js'
import { programOutput } from './program-output.js'

const install = 'sudo apt-get install ffmpeg'

/** What the decoders of the cameras use, as `ffmpeg` lists it. */
const needed = {
  protocols: ['file', 'http', 'https', 'tcp', 'udp', 'rtp', 'tls'],
  demuxers: ['rtsp', 'hls', 'mov,mp4,m4a,3gp,3g2,mj2'],
  decoders: ['h264', 'hevc', 'mjpeg'],
  filters: ['crop', 'fps', 'pad', 'scale', 'select', 'showinfo'],
} as const
type Listing = keyof typeof needed

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
  const output = await programOutput('ffmpeg', ['-version'])
  const version = output && ffmpegVersion(output)
  if (!version) return [{ subject: 'ffmpeg', state: 'failed', detail: 'not found', fix: install }]
  const lacks = await Promise.all(
    (Object.keys(needed) as Listing[]).map(async (listing) => {
      const text = (await programOutput('ffmpeg', ['-hide_banner', `-${listing}`])) ?? ''
      return missingFrom(text, needed[listing]).map((name) => `${listing.slice(0, -1)} ${name}`)
    }),
  )
  const missing = lacks.flat()
  const accelerators = await hardwareDecoders()
  return [
    missing.length === 0
      ? { subject: 'ffmpeg', state: 'ok', detail: `${version}, every protocol and filter needed` }
      : {
          subject: 'ffmpeg',
          state: 'failed',
          detail: `${version} lacks ${missing.join(', ')}`,
          fix: install,
        },
    await examineFfprobe(),
    {
      subject: 'hardware decoding',
      state: 'ok',
      detail: accelerators || 'none built in: cameras are decoded in software',
    },
  ]
}

async function examineFfprobe(): Promise<Finding> {
  const found = await programOutput('ffprobe', ['-version'])
  if (found) return { subject: 'ffprobe', state: 'ok', detail: 'found' }
  return { subject: 'ffprobe', state: 'failed', detail: 'not found', fix: install }
}

/** What this build could use; whether a device is there shows when a camera asks for it. */
async function hardwareDecoders(): Promise<string> {
  const text = (await programOutput('ffmpeg', ['-hide_banner', '-hwaccels'])) ?? ''
  const names = text
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
  const usable = names.filter((name) => name === 'vaapi' || name === 'cuda')
  return usable.length === 0 ? '' : `built for ${usable.join(', ')}; a camera asks for it with hwaccel`
}
