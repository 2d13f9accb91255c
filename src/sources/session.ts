import type { SourceWarning } from '../vision/frame-source.js'
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

/** One attempt to get pictures: a decoder, or a walk through a folder. */
export interface Session {
  /** Resolves once it has ended and nothing of it is left. Never rejects. */
  readonly ended: Promise<SessionEnd>
  /** Asks it to end, and forces it soon after. Idempotent. */
  stop(): void
  cpuSeconds(): number
  /** A card has room for it by now, which was refused that: it ends, to begin again there. Absent: it needs no card. */
  cardHasRoom?(): void
  /** Asked after a silence: whether it may be that only the next key frame is waited for. Absent: never. */
  waitsForKey?(silentMs: number): boolean
}

export interface SessionListener {
  /** The stream is open, and its first picture is waited for, which may take until the next key frame. Not every session tells it. */
  opened?(): void
  /** The buffer belongs to the listener. */
  picture(rgbHwc: ArrayBuffer, info: PictureInfo): void
  warning(kind: SourceWarning, detail: string): void
  /** How the stream is decoded, at first and whenever that changes. Not every session tells it. */
  decoding?(told: ToldDecoding): void
}

export type OpenSession = (listener: SessionListener) => Session
