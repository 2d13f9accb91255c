import { pixelExpressions, readParts, type ToldAspect } from './pixel-aspect.js'
import type { SizePx } from '../vision/letterbox.js'
import { isDamage } from './damage.js'

/** One line of ffmpeg's stderr (`-loglevel repeat+level+info`), understood. */
export type DecoderLine =
  /** A picture passed the sampler; its pixels follow on stdout in the same order. `ptsMs` is null where the stream has no time. */
  | Readonly<{ kind: 'picture'; ptsMs: number | null }>
  /** How large the pictures from here on are, before anything is cut. */
  | Readonly<{ kind: 'size'; source: SizePx; aspect: ToldAspect }>
  /** The shape of the pixels of the pictures from here on. */
  | Readonly<{ kind: 'pixels'; aspect: ToldAspect }>
  /** The decoder does not believe what the stream says about its pixels, and takes them for square. */
  | Readonly<{ kind: 'unbelieved'; text: string }>
  /** A key frame was decoded, sampled or not. */
  | Readonly<{ kind: 'key'; ptsMs: number | null }>
  /** The decoder met damaged or missing data. */
  | Readonly<{ kind: 'damage'; text: string }>
  /** A decoder finds the stream odd; its pictures are sound, and whatever ends it is told by others. */
  | Readonly<{ kind: 'note'; text: string }>
  /** The container that was opened. */
  | Readonly<{ kind: 'input'; format: string }>
  /** How long the material is, where the container tells it. */
  | Readonly<{ kind: 'length'; seconds: number }>
  /** A video of the input, then of the output, with ffmpeg's name of its codec. A cover is a picture beside sound or a video. `index` is among all that the input holds. */
  | Readonly<{ kind: 'stream'; index: number; codec: string; isCover: boolean; size: string; fps?: number }>
  /** All videos of the input were told; those of the output come next. */
  | Readonly<{ kind: 'chosen' }>
  /** ffmpeg found no hardware, or none that decodes the stream. */
  | Readonly<{ kind: 'noHardware' }>
  /** Something for the log. */
  | Readonly<{ kind: 'message'; level: 'error' | 'warning'; text: string }>
  | Readonly<{ kind: 'chatter' }>

const chatter: DecoderLine = { kind: 'chatter' }

/** Said of every stream that is opened quickly, of every MJPEG, and of pictures that come late or have one time. */
const usual =
  /not enough frames to estimate rate|Consider increasing the value for the 'analyzeduration'|^deprecated pixel format used|non monotonically increasing dts to muxer/

/** Room for a width and a height of 16 bits each; the shape of the pixels before them has 21. */
const perPart = 0x1_0000_0000

/**
 * Expressions of our filter graph that print a number, told apart by its level and sign; their value is that number. Times have
 * microseconds however long a stream runs; `showinfo` gives six digits, which are whole seconds after a day.
 */
export const prints = {
  key: 'print(t)',
  picture: 'print(t,24)',
  size: `print(-(${pixelExpressions.parts}*${perPart}+iw*${0x1_0000}+ih))`,
  /** For expressions whose variable 0 holds {@link pixelExpressions.parts}. */
  pixels: `print(-ld(0)*${perPart})`,
} as const

/** What {@link prints} says; newer versions of ffmpeg (9, not 5) name who says it. */
const printedNumber = /^(?:\[Eval @ \w+\] )?\[(info|warning)\] (-?\d+\.\d+|-?nan)$/

/** Decoders, also of sound, and parsers (NULL), by the context of a line; demuxers of raw streams have the same names. */
const decoder = new RegExp(
  String.raw`^\[(vist#\S+ @ \w+\] \[dec:)?(` +
    'NULL|h26[134]|hevc|mjpeg|mpeg4|mpeg[12]video|mpegvideo|flv|gif|vp[89]|av1|libdav1d|libaom-av1|' +
    String.raw`aac|mp[123](float)?|e?ac3|opus|vorbis|flac|alac|amr\w+|g72\w+|(ad)?pcm_\w+|dca|wma\w+|speex` +
    String.raw`)(_\w+)? @ `,
)
/** What cameras put beside the pictures of their streams, by those who take packets apart. */
const besides = /^Undefined type \(\d+\)|^Unsupported \(HEVC\) NAL type|^RTP: dropping old packet/
const noHardware = /^Auto hwaccel disabled|^Failed setup for format \w+: hwaccel initialisation/
const unbelievedAspect = /^ignoring invalid SAR|^Unknown SAR index/
/** Told with the name of a decoder, and of more than one stream's pictures: for the log, and why it ended. */
const ofTheWhole =
  /hwaccel|hardware accelerator|No device available|Could not find codec parameters|CUDA|\bcu->/i

export function parseDecoderLine(line: string): DecoderLine {
  const printed = printedNumber.exec(line)
  if (printed !== null) return printedOf(printed[1] === 'warning', Number(printed[2]))
  const level = /\[(panic|fatal|error|warning|info)\] /.exec(line)
  if (level === null) return chatter
  const text = line.slice(level.index + level[0].length)
  if (noHardware.test(text)) return { kind: 'noHardware' }
  const isDecoder = decoder.test(line)
  if (level[1] === 'info') return isDecoder && isDamage(text) ? { kind: 'damage', text } : inputOf(text)
  if (usual.test(text)) return chatter
  if (unbelievedAspect.test(text)) return { kind: 'unbelieved', text }
  if (isDamage(text)) return { kind: 'damage', text }
  if (besides.test(text) || (isDecoder && !ofTheWhole.test(text))) return { kind: 'note', text }
  return { kind: 'message', level: level[1] === 'warning' ? 'warning' : 'error', text }
}

/** @param seconds - NaN where the stream has no time. */
function printedOf(sampled: boolean, seconds: number): DecoderLine {
  const told = -seconds
  if (!sampled && told >= 0x1_0000) {
    const aspect = readParts(Math.floor(told / perPart))
    const size = told % perPart
    if (size === 0) return { kind: 'pixels', aspect }
    return {
      kind: 'size',
      source: { widthPx: Math.floor(size / 0x1_0000), heightPx: size % 0x1_0000 },
      aspect,
    }
  }
  return { kind: sampled ? 'picture' : 'key', ptsMs: Number.isNaN(seconds) ? null : seconds * 1e3 }
}

function inputOf(text: string): DecoderLine {
  const format = /^Input #0, ([^ ]+), from /.exec(text)?.[1]
  if (format !== undefined) return { kind: 'input', format }
  const [, hours, minutes, seconds] = /^ *Duration: (\d+):(\d+):([\d.]+),/.exec(text) ?? []
  if (hours !== undefined)
    return { kind: 'length', seconds: Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds) }
  if (/^Stream mapping:/.test(text)) return { kind: 'chosen' }
  const [, index, codec, facts = ''] = /^ *Stream #0:(\d+)[^ ]*: Video: (\w+)(.*)/.exec(text) ?? []
  if (codec === undefined) return chatter
  const size = /, (\d+x\d+)/.exec(facts)?.[1]?.replace('x', ' x ') ?? ''
  const isCover = /\((attached pic|timed thumbnails)\)/.test(facts)
  const fps = Number(/, ([\d.]+) fps\b/.exec(facts)?.[1] ?? 0)
  return { kind: 'stream', index: Number(index), codec, isCover, size, ...(fps > 0 && { fps }) }
}
