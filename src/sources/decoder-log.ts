import { redactText } from '../config/redact.js'
import { decodedTag, sampledTag } from './ffmpeg-command.js'

/** What ffmpeg says about one picture. */
export type PictureInfo = Readonly<{ ptsMs: number; widthPx: number; heightPx: number }>

/** A line of ffmpeg's log, understood. Texts are redacted. */
export type LogEvent =
  | Readonly<{ kind: 'decoded'; keyFrame: boolean }>
  | Readonly<{ kind: 'sampled'; info: PictureInfo }>
  | Readonly<{ kind: 'damage'; text: string }>
  | Readonly<{ kind: 'problem'; text: string }>

/** Parts of ffmpeg that report damaged pictures; what others warn of leaves the pictures whole. */
const damageReporters =
  /^\[(h264|hevc|mjpeg|mpeg4|mpeg2video|vp8|vp9|av1|libdav1d|rtsp|sdp|rtp|udp|mpegts|null|vist#\S*) @/
/** Said of sound streams too. */
const harmless =
  /not enough frames to estimate rate|Non-monoton|Application provided duration|deprecated pixel format|estimating duration|Guessed Channel/i
const levelTag = /\[(warning|error|fatal|panic)\]/
const longestTextChars = 500

/**
 * Reads one line of a log at `level+info`.
 *
 * @returns nothing for lines that say nothing about pictures or problems.
 */
export function parseLogLine(line: string): LogEvent | undefined {
  if (line.startsWith(`[${sampledTag}`) || line.startsWith(`[${decodedTag}`)) return parseShowinfo(line)
  const level = levelTag.exec(line)?.[1]
  if (level === undefined || harmless.test(line)) return undefined
  const text = redactText(line.replace(/ @ 0x[0-9a-f]+/g, '')).slice(0, longestTextChars)
  const damaged = damageReporters.test(line) || /corrupt|concealing/i.test(line)
  return { kind: damaged ? 'damage' : 'problem', text }
}

function parseShowinfo(line: string): LogEvent | undefined {
  const ptsS = field(line, ' pts_time:')
  if (ptsS === undefined) return undefined
  if (line.startsWith(`[${decodedTag}`)) return { kind: 'decoded', keyFrame: field(line, ' iskey:') === '1' }
  const [width, height] = (field(line, ' s:') ?? '').split('x').map(Number)
  if (!width || !height) return undefined
  const ptsMs = ptsS === 'NOPTS' ? 0 : Number(ptsS) * 1_000
  return { kind: 'sampled', info: { ptsMs, widthPx: width, heightPx: height } }
}

/** The word behind a key; showinfo pads some values with blanks. */
function field(line: string, key: string): string | undefined {
  const at = line.indexOf(key)
  if (at < 0) return undefined
  return /^\s*(\S+)/.exec(line.slice(at + key.length, at + key.length + 40))?.[1]
}

/** Cuts a stream of chunks into lines; a line without end is cut at `mostChars`, because a log must not fill the memory. */
export class LineSplitter {
  #rest = ''

  constructor(
    readonly onLine: (line: string) => void,
    readonly mostChars = 8_192,
  ) {}

  push(chunk: string): void {
    const lines = (this.#rest + chunk).split(/[\r\n]+/)
    this.#rest = (lines.pop() ?? '').slice(0, this.mostChars)
    for (const line of lines) if (line !== '') this.onLine(line)
  }
}

/** At most `perSecond` lines pass each second; how many did not is told with the first that passes again. */
export class LogBudget {
  #second = 0
  #passed = 0
  #suppressed = 0

  constructor(readonly perSecond: number) {}

  /** @returns whether this line passes, and how many were held back before it. */
  take(nowMs: number): { pass: boolean; suppressed: number } {
    const second = Math.floor(nowMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#passed = 0
    }
    if (this.#passed >= this.perSecond) {
      this.#suppressed += 1
      return { pass: false, suppressed: 0 }
    }
    this.#passed += 1
    const suppressed = this.#suppressed
    this.#suppressed = 0
    return { pass: true, suppressed }
  }
}
