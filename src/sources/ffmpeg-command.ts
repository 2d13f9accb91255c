import ffmpeg from 'fluent-ffmpeg'
import type { CameraConfig } from '../config/camera.js'
import type { DecodeMode } from '../vision/camera-state.js'
import type { FrameFormat } from '../vision/frame.js'
import type { CameraLocation } from './camera-url.js'
import { prints } from './decoder-log.js'
import type { DecodeWay } from './decode-ways.js'
import { cardLetterboxFilters, letterboxFilters, wholeFilters } from './geometry.js'
import { setAspectFilters, type SetAspect } from './pixel-aspect.js'
import { selectExpression, type SamplingPhase } from './sampling.js'

/**
 * Protocols ffmpeg may open, by kind of source. TCP leads to a gate of ours alone ({@link RtspGate}, {@link HttpGate}), since nothing
 * that is opened names another place: play lists are those that the gate wrote. UDP carries packets between addresses that it checked.
 */
const protocols = {
  rtspTcp: 'tcp',
  rtspUdp: 'tcp,rtp,udp',
  media: 'http,tcp',
  playList: 'http,tcp,crypto',
  pictures: 'http,tcp',
  file: 'file',
} as const

/** Containers; keeps scripts and play lists that name other files (`concat`) out, and `hls` where there is no play list. */
const media =
  'mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,h264,hevc,m4v,mjpeg,jpeg_pipe,ogg'
const formats = {
  rtsp: 'rtsp',
  media,
  playList: `hls,${media}`,
  pictures: 'mpjpeg',
  file: 'mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,h264,hevc,m4v,mjpeg,mpjpeg,jpeg_pipe,ivf,gif,ogg',
} as const

/** Longest silence while a piece of a play list is fetched. Silence of a stream is judged by its gate and the watchdog on pictures. */
const pieceTimeoutUs = '10000000'

const common = ['-hide_banner', '-nostats', '-nostdin', '-loglevel', 'repeat+level+info', '-threads', '1']

/** Network cameras are opened through their gate, by the URLs that it gives them. */
export type DecoderInput =
  | Extract<CameraLocation, { kind: 'file' }>
  | Readonly<{ kind: 'rtsp'; url: string; transport: CameraConfig['transport'] }>
  /** Single pictures without a clock, as {@link PictureGate} hands them on. */
  | Readonly<{ kind: 'pictures'; url: string }>
  | Readonly<{ kind: 'http'; url: string; proxyUrl: string; playList: boolean }>

/** `stream`: by the stream's own clock; `reader`: once, as fast as it is read. */
export type Pace = 'stream' | 'reader'

/** How one run of the decoder differs from another of the same camera. */
export type DecoderRun = Readonly<{
  pace?: Pace
  phase?: SamplingPhase | undefined
  mode?: DecodeMode
}>

/**
 * What each mode leaves out. The loop filter of pictures that none refers to is missed by those alone; without that of others the
 * difference grows until the next key frame (docs/benchmarks.md).
 */
export const leftOut: Readonly<Record<DecodeMode, readonly string[]>> = {
  full: [],
  fast: ['-skip_loop_filter', 'noref'],
  keyframes: ['-skip_frame', 'nokey'],
}

/** fluent-ffmpeg is archived: it composes the list, starting and ending the process is the supervisor's. */
type Composed = ffmpeg.FfmpegCommand & { _getArguments(): string[] }

/**
 * Arguments of the ffmpeg that decodes one camera: letterboxed packed RGB frames on stdout, and on stderr one number for each
 * of them, in the same order ({@link prints}).
 *
 * Low latency comes from one thread on either side and a short probe that does not wait for the frame rate (first frame 0.2 s, delay
 * 63 ms; ffmpeg's own defaults: 1.3 s and 378 ms; `-fflags nobuffer` made it worse). Pixels are written as they lie (`-avioflags direct`):
 * copied into ffmpeg's buffer before, a frame of 1 MB costs it 0.25 ms more.
 */
export function decoderArguments(
  camera: CameraConfig,
  input: DecoderInput,
  format: FrameFormat,
  way: DecodeWay,
  { pace = 'stream', phase, mode = 'full' }: DecoderRun = {},
): string[] {
  const command = ffmpeg()
    .input(nameOf(input))
    .inputOptions([...common])
    .inputOptions(hardwareOptions(way))
    .inputOptions([...leftOut[mode]])
    .inputOptions(inputOptions(input, pacing(camera, pace)))
    .outputOptions([...videoOf(camera), '-threads', '1', '-fps_mode', 'passthrough'])
    // Streams are wrong about how many pictures a second they have: times of two must not be one.
    .outputOptions(['-avioflags', 'direct', '-enc_time_base', '1:90000'])
    .videoFilters(filters(camera, format, way, mode, phase).join(','))
    .format('rawvideo')
    .output('pipe:1') as Composed
  return command._getArguments()
}

/** Longest side of a picture that is taken by itself; larger ones are scaled down. */
export const mostPicturePx = 4_096

/** Most bytes of such a picture. */
export const mostPictureBytes = mostPicturePx ** 2 * 3

/** Prints its size and that of its pixels; it cuts nothing. Its expressions are read once for each size of picture. */
const sizeFilter = `crop=w=iw:h='ih+0*${prints.size}':exact=1`

/** Prints the time of each picture that comes through; behind whatever tells of its size. */
const pictureFilter = `select='1+0*${prints.picture}'`

/**
 * Arguments of the ffmpeg that takes one whole picture: its packed RGB on stdout, and on stderr its size ({@link prints}).
 *
 * @param atS - place in a file, in seconds; absent: the first key frame.
 */
export function pictureArguments(input: DecoderInput, camera: SetAspect, atS?: number): string[] {
  const command = ffmpeg()
    .input(nameOf(input))
    .inputOptions([...common, ...(atS === undefined ? leftOut.keyframes : []), ...inputOptions(input, [])])
    .inputOptions(atS === undefined ? [] : ['-ss', atS.toFixed(3)])
    .outputOptions([...videoOf(), '-threads', '1', '-frames:v', '1'])
    .videoFilters(
      [...setAspectFilters(camera), ...wholeFilters(mostPicturePx), 'format=rgb24', sizeFilter].join(','),
    )
    .format('rawvideo')
    .output('pipe:1') as Composed
  return command._getArguments()
}

/** Longest side of a frame that is kept as a picture. */
const mostClipPx = 1_280

/** Which frames of a clip are kept: one at a moment, or so many of each second. */
export type ClipFrames = Readonly<{ atS: number }> | Readonly<{ perSecond: number; count: number }>

/**
 * Arguments of the ffmpeg that keeps frames of a clip as pictures.
 *
 * @param target - name of the pictures, with `%06d` for the number where there are several.
 */
export function frameArguments(path: string, frames: ClipFrames, target: string): string[] {
  const one = 'atS' in frames
  const rate = one ? [] : [`fps=${frames.perSecond.toFixed(6)}`]
  const command = ffmpeg()
    .input(`file:${path}`)
    .inputOptions([...common, ...opening(protocols.file, formats.file)])
    .inputOptions(one ? ['-ss', frames.atS.toFixed(3)] : [])
    .outputOptions([...videoOf(), '-frames:v', one ? '1' : String(frames.count)])
    .videoFilters([...rate, ...wholeFilters(mostClipPx), 'format=rgb24'].join(','))
    .outputOptions(['-compression_level', '1'])
    .output(target) as Composed
  return command._getArguments()
}

/** One video of an input, and nothing else. Cover pictures (`V`) are none, wherever they stand. */
function videoOf({ videoTrack }: Pick<CameraConfig, 'videoTrack'> = { videoTrack: 1 }): string[] {
  return ['-map', `0:V:${videoTrack - 1}`, '-an', '-sn', '-dn']
}

function nameOf(input: DecoderInput): string {
  return input.kind === 'file' ? `file:${input.path}` : input.url
}

function inputOptions(input: DecoderInput, paced: readonly string[]): string[] {
  switch (input.kind) {
    case 'rtsp':
      return [
        ...opening(input.transport === 'tcp' ? protocols.rtspTcp : protocols.rtspUdp, formats.rtsp),
        // One picture is enough: what is probed longer is held back, and shown late.
        ...['-probesize', '32', '-analyzeduration', '500000', '-fpsprobesize', '0'],
        ...['-rtsp_transport', input.transport, '-allowed_media_types', 'video'],
      ]
    case 'http':
      return [
        ...(input.playList
          ? opening(protocols.playList, formats.playList)
          : opening(protocols.media, formats.media)),
        ...['-probesize', '1000000', '-analyzeduration', '1000000'],
        ...(input.playList ? ['-rw_timeout', pieceTimeoutUs] : []),
        ...['-http_proxy', input.proxyUrl],
        ...paced,
      ]
    case 'pictures':
      // Their time is that of their arrival. The watchdog on frames bears a silence, which may be as long as it is set to.
      return [
        ...opening(protocols.pictures, formats.pictures),
        ...['-f', formats.pictures, '-fpsprobesize', '0', '-use_wallclock_as_timestamps', '1'],
      ]
    case 'file':
      return [...opening(protocols.file, formats.file), ...paced]
    default:
      return input satisfies never
  }
}

function opening(protocolList: string, formatList: string): string[] {
  return ['-protocol_whitelist', protocolList, '-format_whitelist', formatList]
}

function pacing(camera: CameraConfig, pace: Pace): string[] {
  if (pace === 'reader') return []
  // AVI tells no times but those of decoding, by which a loop has no length: it would be played as fast as it can be.
  return ['-fflags', '+genpts', '-re', ...(camera.loop ? ['-stream_loop', '-1'] : [])]
}

/** Without `-hwaccel_output_format` every picture is brought back, sampled or not. */
function hardwareOptions(way: DecodeWay): string[] {
  switch (way.by) {
    case 'software':
      return []
    case 'vaapi':
    case 'auto':
      return ['-hwaccel', way.by]
    case 'cuda':
    case 'cuda-scaled':
      return ['-hwaccel', 'cuda', '-hwaccel_device', `${way.device}`, '-hwaccel_output_format', 'cuda']
    default:
      return way satisfies never
  }
}

/** Those before the last two lines take pictures wherever they are. */
function filters(
  camera: CameraConfig,
  format: FrameFormat,
  way: DecodeWay,
  mode: DecodeMode,
  phase?: SamplingPhase,
): string[] {
  const keysAlone = mode === 'keyframes'
  return [
    // A stream that is refreshed piece by piece has points to begin at, which the decoder takes for key frames; those show a part.
    ...(keysAlone ? ["select='eq(pict_type,I)'"] : []),
    `select='${selectExpression(camera.sampleFps, phase, undefined, keysAlone ? '1' : 'key', '0')}'`,
    ...setAspectFilters(camera),
    sizeFilter,
    ...scaling(camera, format, way),
    pictureFilter,
  ]
}

function scaling(camera: CameraConfig, format: FrameFormat, way: DecodeWay): string[] {
  if (way.by === 'cuda-scaled') return cardLetterboxFilters(camera, format)
  const download = way.by === 'cuda' ? ['hwdownload', `format=${way.tenBit ? 'p010le' : 'nv12'}`] : []
  return [...download, ...letterboxFilters(camera, format)]
}

/** Arguments that make ffmpeg or ffprobe tell what it is, or ffmpeg list what was built into it. */
export function listingArguments(
  of: 'version' | 'protocols' | 'demuxers' | 'decoders' | 'filters' | 'hwaccels',
) {
  return ['-hide_banner', `-${of}`]
}

/** Arguments of the ffmpeg that opens the device of an accelerator and decodes nothing with it; it fails where there is none. */
export function openDeviceArguments(accelerator: string): string[] {
  const command = ffmpeg()
    .input('nullsrc=s=16x16')
    .inputFormat('lavfi')
    .inputOptions(['-v', 'error', '-init_hw_device', accelerator])
    .outputOptions(['-frames:v', '1'])
    .format('null')
    .output('-') as Composed
  return command._getArguments()
}

/** Arguments of the ffmpeg that tells of one picture as it does of those of cameras: time and size by {@link prints}. */
export function tellingArguments(): string[] {
  const command = ffmpeg()
    .input('color=s=64x48:r=5:d=1')
    .inputFormat('lavfi')
    .inputOptions([...common])
    .videoFilters([`select='${selectExpression(5, undefined)}'`, sizeFilter].join(','))
    .outputOptions(['-frames:v', '1'])
    .format('null')
    .output('-') as Composed
  return command._getArguments()
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
  const stream = ['-map', '0:V:0', '-an', ...codec, '-bsf:v', 'h264_mp4toannexb']
  const command = ffmpeg()
    .input(`file:${clip}`)
    .inputOptions([
      '-hide_banner',
      '-nostats',
      '-nostdin',
      '-loglevel',
      'error',
      '-protocol_whitelist',
      'file',
    ])
    .output('pipe:1')
    .outputOptions([...stream, '-f', 'h264'])
    .output('pipe:3')
    .outputOptions([...stream, '-f', 'framecrc']) as Composed
  return command._getArguments()
}

export type EncodedClip = Readonly<{
  path: string
  widthPx: number
  heightPx: number
  fps: number
  /** x264's constant quality; 23 is plain, 28 small. */
  crf: number
  maxKbps: number
}>

/**
 * Arguments of the ffmpeg that encodes packed RGBA pictures on stdin as H.264, as cameras send it. One thread:
 * with two, x264 at its rate limit makes other bytes of the same pictures.
 */
export function encoderArguments({ path, widthPx, heightPx, fps, crf, maxKbps }: EncodedClip): string[] {
  const command = ffmpeg()
    .input('pipe:0')
    .inputFormat('rawvideo')
    .inputOptions(['-hide_banner', '-loglevel', 'error'])
    .inputOptions(['-pix_fmt', 'rgba', '-s', `${widthPx}x${heightPx}`, '-r', `${fps}`])
    .videoFilters('scale=out_color_matrix=bt709')
    .outputOptions(['-c:v', 'libx264', '-preset', 'medium', '-threads', '1', '-pix_fmt', 'yuv420p'])
    .outputOptions(['-crf', `${crf}`, '-maxrate', `${maxKbps}k`, '-bufsize', `${maxKbps * 2}k`])
    .outputOptions(['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709'])
    .outputOptions(['-g', `${fps * 2}`, '-bf', '0', '-movflags', '+faststart'])
    .outputOptions(['-fflags', '+bitexact', '-flags:v', '+bitexact'])
    .output(path) as Composed
  return command._getArguments()
}
