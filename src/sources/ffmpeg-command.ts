import ffmpeg from 'fluent-ffmpeg'
import type { CameraConfig } from '../config/camera.js'
import type { FrameFormat } from '../frames/frame.js'
import type { CameraLocation } from './camera-url.js'
import { letterboxFilters } from './geometry.js'

/** Protocols ffmpeg may open, by kind of source; a play list or a redirect cannot lead it to another. */
const protocols = {
  rtsp: 'rtsp,rtsps,rtp,srtp,tcp,tls,udp,crypto',
  http: 'http,https,tcp,tls,crypto',
  file: 'file',
} as const

/** Names of the two showinfo filters in the log: of every decoded frame, and of those that go to the model. */
export const decodedTag = 'showinfo@decoded'
export const sampledTag = 'showinfo@sampled'

export type Hwaccel = 'none' | 'vaapi' | 'cuda'

export type DecoderInput = Extract<CameraLocation, { kind: 'rtsp' | 'http' | 'file' }>

/** fluent-ffmpeg composes the list; starting and ending the process is the supervisor's. */
type Composed = ffmpeg.FfmpegCommand & { _getArguments(): string[] }

/**
 * Arguments of the ffmpeg that decodes one camera: letterboxed packed RGB frames on stdout, a log with a line per frame on stderr.
 *
 * Low latency comes from one thread on either side and a short probe (first frame 0.2 s, delay 63 ms; ffmpeg's own defaults: 1.3 s and
 * 378 ms). Frames are picked by time, and a clock that jumps back starts the picking anew.
 */
export function decoderArguments(
  camera: CameraConfig,
  input: DecoderInput,
  format: FrameFormat,
  hwaccel: Hwaccel,
): string[] {
  const source = input.kind === 'file' ? `file:${input.path}` : input.url
  const command = ffmpeg()
    .input(source)
    .inputOptions([
      ...globalOptions,
      ...hwaccelOptions(hwaccel),
      ...lowLatency,
      ...inputOptions(camera, input),
    ])
    .outputOptions(['-map', '0:v:0', '-an', '-sn', '-dn', '-threads', '1', '-fps_mode', 'passthrough'])
    .videoFilters(filters(camera, format).join(','))
    .format('rawvideo')
    .output('pipe:1') as Composed
  return command._getArguments()
}

const globalOptions = ['-hide_banner', '-nostats', '-loglevel', 'level+info']
const lowLatency = ['-threads', '1', '-probesize', '32768', '-analyzeduration', '500000']

function hwaccelOptions(hwaccel: Hwaccel): string[] {
  return hwaccel === 'none' ? [] : ['-hwaccel', hwaccel]
}

function inputOptions(camera: CameraConfig, { kind }: DecoderInput): string[] {
  const whitelist = ['-protocol_whitelist', protocols[kind]]
  const timeoutUs = String(camera.stallTimeoutMs * 1_000)
  switch (kind) {
    case 'rtsp':
      return [...whitelist, '-rtsp_transport', camera.transport, '-timeout', timeoutUs]
    case 'http':
      return [...whitelist, '-rw_timeout', timeoutUs]
    case 'file':
      return [...whitelist, '-re', ...(camera.loop ? ['-stream_loop', '-1'] : [])]
    default:
      return kind satisfies never
  }
}

function filters(camera: CameraConfig, format: FrameFormat): string[] {
  // The first frame of each interval of the stream's clock. A hundredth of an interval keeps rounded time stamps on their side.
  const interval = (time: string) => `floor(${time}*${camera.sampleFps}+0.01)`
  const pick = `isnan(prev_selected_t)+not(eq(${interval('t')}\\,${interval('prev_selected_t')}))`
  return [
    `${decodedTag}=checksum=0`,
    `select=${pick}`,
    `${sampledTag}=checksum=0`,
    ...letterboxFilters(camera, format),
  ]
}

/**
 * Arguments of the ffmpeg that takes a clip apart for serving it: H.264 in Annex B on stdout, and on file descriptor 3 one
 * `framecrc` line for each access unit with its times and size.
 *
 * @param encode - encode it, for clips that are not H.264.
 */
export function clipArguments(clip: string, encode: boolean): string[] {
  const codec = encode
    ? ['-c:v', 'libx264', '-preset', 'veryfast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p', '-g', '50']
    : ['-c:v', 'copy']
  const stream = ['-map', '0:v:0', '-an', ...codec, '-bsf:v', 'h264_mp4toannexb']
  const command = ffmpeg()
    .input(`file:${clip}`)
    .inputOptions(['-hide_banner', '-nostats', '-nostdin', '-loglevel', 'error', '-protocol_whitelist', 'file'])
    .output('pipe:1')
    .outputOptions([...stream, '-f', 'h264'])
    .output('pipe:3')
    .outputOptions([...stream, '-f', 'framecrc']) as Composed
  return command._getArguments()
}
