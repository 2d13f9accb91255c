import type { SentPictureSource, SourceWarning, VideoStreamFacts } from '../vision/frame-source.js'
import type { ToldDecoding } from './decode-policy.js'
import type { Failure } from './failure-reason.js'
import type { PictureInfo } from './picture-pairing.js'

/** How a session ended. */
export type SessionEnd =
  /** The material came to its end. */
  | Readonly<{ kind: 'finished' }>
  /** It should begin again at once, with what was learned. */
  | Readonly<{ kind: 'again'; reason: string }>
  | (Readonly<{ kind: 'failed' }> & Failure)

/** A time in which a camera sent no picture, and after which it went on by itself. Times in ms, of the monotonic clock. */
export type Quiet = Readonly<{ forMs: number; endedMs: number }>

/** What is known of a camera that has said that it sends, beside its pictures. */
export type SignsOfLife = Readonly<{
  /** `alive`: it was heard of a moment ago; `gone`: it no longer answers, as it did; `unknown`: nobody can tell. */
  life: 'alive' | 'gone' | 'unknown'
  /** Pictures that have come, decoded or not; undefined where nobody counts them. */
  pictures?: number | undefined
  /** The last time of more than a second between two of them, or before the first. */
  quiet?: Quiet | undefined
}>

/** One attempt to get pictures: a decoder, or a walk through a folder. */
export interface Session {
  /** Resolves once it has ended and nothing of it is left. Never rejects. */
  readonly ended: Promise<SessionEnd>
  /** Asks it to end, and forces it soon after. Idempotent. */
  stop(): void
  cpuSeconds(): number
  /** A card has room for it by now, which was refused that: it ends, to begin again there. Absent: it needs no card. */
  cardHasRoom?(): void
  /** Asked after a silence: whether it may be that only the next key frame is waited for, or the next picture of a file. Absent: never. */
  waitsForKey?(silentMs: number): boolean
  /** The newest picture as it was sent. Absent: it is not at hand. */
  sentPicture?(): SentPictureSource | undefined
  /** Asked in a silence. Absent: nothing is known. */
  signs?(): SignsOfLife
}

export interface SessionListener {
  /** The stream is open, and its first picture is waited for, which may take until the next key frame. Not every session tells it. */
  opened?(): void
  /** The buffer belongs to the listener. */
  picture(rgbHwc: ArrayBuffer, info: PictureInfo): void
  warning(kind: SourceWarning, detail: string): void
  /** What the video is that is shown. Not every session tells it. */
  stream?(facts: VideoStreamFacts): void
  /** How the stream is decoded, at first and whenever that changes. Not every session tells it. */
  decoding?(told: ToldDecoding): void
}

export type OpenSession = (listener: SessionListener) => Session
