import type { SizePx } from '../frames/letterbox.js'

/** One line of ffmpeg's stderr (`-loglevel level+info`), understood. */
export type DecoderLine =
  /** A picture passed the sampler; its pixels follow on stdout in the same order. `ptsMs` is null where the stream has no time. */
  | Readonly<{ kind: 'picture'; ptsMs: number | null; source: SizePx; key: boolean }>
  /** A key frame was decoded, sampled or not. */
  | Readonly<{ kind: 'key'; ptsMs: number | null }>
  /** The decoder met damaged or missing data. */
  | Readonly<{ kind: 'damage'; text: string }>
  /** The container that was opened. */
  | Readonly<{ kind: 'input'; format: string }>
  /** An RTSP server sends the decoder elsewhere; ffmpeg goes there without asking. */
  | Readonly<{ kind: 'redirect'; url: string }>
  /** ffmpeg looked for hardware by itself and found none. */
  | Readonly<{ kind: 'noHardware' }>
  /** Something for the log. */
  | Readonly<{ kind: 'message'; level: 'error' | 'warning'; text: string }>
  | Readonly<{ kind: 'chatter' }>

const chatter: DecoderLine = { kind: 'chatter' }

/** Said of every stream that is opened quickly. */
const usual = /not enough frames to estimate rate|Consider increasing the value for the 'analyzeduration'/

/** Name of the `showinfo` instance whose lines are pictures. */
export const pictureFilter = 'showinfo@picture'

/** Decoders' own complaints, told from those of demuxers by the context they are printed with. */
const videoDecoder =
  /^\[(h264|hevc|mjpeg|mpeg4|mpeg2video|mpeg1video|h263|vp8|vp9|av1|libdav1d|libaom-av1)(_\w+)? @ /
const lostPackets =
  /corrupt decoded frame|Packet corrupt|RTP: missed \d+ packets|bad cseq|max delay reached|RTP: dropping old packet/
/** Complaints of a decoder that are no damage to a picture. */
const harmless =
  /deprecated pixel format|Auto hwaccel|hardware accelerator|hwaccel|No device available|Could not find ref/i

export function parseDecoderLine(line: string): DecoderLine {
  if (line.startsWith(`[${pictureFilter} `)) return pictureOf(line)
  const key = /^\[info\] (-?\d+\.\d+|-?nan)$/.exec(line)
  if (key !== null) return { kind: 'key', ptsMs: msOf(key[1]) }
  const level = /\[(panic|fatal|error|warning|info)\] /.exec(line)
  if (level === null) return chatter
  const text = line.slice(level.index + level[0].length)
  if (level[1] === 'info') return inputOf(text)
  if (usual.test(text)) return chatter
  if (lostPackets.test(text)) return { kind: 'damage', text }
  if (videoDecoder.test(line) && !harmless.test(text)) return { kind: 'damage', text }
  return { kind: 'message', level: level[1] === 'warning' ? 'warning' : 'error', text }
}

function pictureOf(line: string): DecoderLine {
  const match = / pts_time:(\S+) .* s:(\d+)x(\d+) .* iskey:([01]) /.exec(line)
  if (match === null) return chatter
  return {
    kind: 'picture',
    ptsMs: msOf(match[1]),
    source: { widthPx: Number(match[2]), heightPx: Number(match[3]) },
    key: match[4] === '1',
  }
}

/** Milliseconds of a printed number of seconds; null of what is none. */
function msOf(printed: string | undefined): number | null {
  const seconds = Number(printed)
  return Number.isFinite(seconds) ? seconds * 1e3 : null
}

function inputOf(text: string): DecoderLine {
  if (text.startsWith('Auto hwaccel disabled')) return { kind: 'noHardware' }
  const redirect = /^Status \d+: Redirecting to (\S+)/.exec(text)
  if (redirect?.[1] !== undefined) return { kind: 'redirect', url: redirect[1] }
  const match = /^Input #0, ([^ ]+), from /.exec(text)
  return match?.[1] === undefined ? chatter : { kind: 'input', format: match[1] }
}
