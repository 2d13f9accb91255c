import type { RtspMessage } from './rtsp-splitter.js'
import type { Quiet, SignsOfLife } from './session.js'

/** Time of a session where the camera names none (RFC 2326, 12.37). */
const usualSessionMs = 60_000
/** Of that time, after which a request is due; the decoder's come after half of it, while pictures come. */
const dueShare = 0.6
/** Silence after which the camera is asked whether it is there. */
const silenceMs = 10_000
/** How long it may take to answer. */
const answerMs = 10_000
const leastQuietMs = 1_000
const mostEveryMs = 5_000
const sessionNotFound = 454

export type KeptSession = Readonly<{ method: 'GET_PARAMETER' | 'OPTIONS'; session: string | undefined }>

/**
 * What is to be asked of a camera that plays, so that its session does not run out while it sends little, and what its silence means.
 * The decoder asks only when a picture has come, which may be a minute after the one before. Times of calls in ms, of the monotonic clock.
 */
export class SessionKeeper {
  #method: KeptSession['method'] = 'OPTIONS'
  #session: string | undefined
  #dueMs = dueShare * usualSessionMs
  #askedMs: number
  #heardMs: number
  #mediaMs: number
  #quiet: Quiet | undefined
  /** Of our own, which has not been answered. */
  #openSinceMs: number | undefined
  #hasAnswered = false
  #isOver = false

  constructor(nowMs: number) {
    this.#askedMs = nowMs
    this.#heardMs = nowMs
    this.#mediaMs = nowMs
  }

  /** How often {@link next} is to be called. */
  get everyMs(): number {
    return Math.min(mostEveryMs, this.#dueMs / 4)
  }

  /** The camera has answered a request of the decoder. */
  learn({ headers }: RtspMessage): void {
    for (const [name, value] of headers) {
      if (/^public$/i.test(name) && /\bGET_PARAMETER\b/i.test(value)) this.#method = 'GET_PARAMETER'
      if (!/^session$/i.test(name)) continue
      const [id = '', ...fields] = value.split(';').map((part) => part.trim())
      const seconds = Number(/^timeout=(\d{1,6})$/i.exec(fields.join(';'))?.[1] ?? 0)
      if (id !== '') this.#session = id
      if (seconds > 0) this.#dueMs = dueShare * 1_000 * seconds
    }
  }

  /** Something came of it. */
  heard(nowMs: number): void {
    this.#heardMs = nowMs
    this.#openSinceMs = undefined
  }

  /** Pictures came of it, or parts of one; time is counted from {@link plays} on. */
  sent(nowMs: number): void {
    const forMs = nowMs - this.#mediaMs
    if (forMs >= leastQuietMs) this.#quiet = { forMs, endedMs: nowMs }
    this.#mediaMs = nowMs
    this.#isOver = false
  }

  /** It has agreed to send. */
  plays(nowMs: number): void {
    this.#mediaMs = nowMs
  }

  /** A request went to it, whoever asks. */
  asked(nowMs: number): void {
    this.#askedMs = nowMs
  }

  /** One of our own was answered. */
  answered(status: number): void {
    this.#hasAnswered = true
    this.#isOver = status === sessionNotFound
  }

  /** @returns the request that is due now, which the caller sends at once. */
  next(nowMs: number): KeptSession | undefined {
    const sinceAskedMs = nowMs - this.#askedMs
    const isSilent = nowMs - this.#heardMs >= silenceMs && sinceAskedMs >= silenceMs
    if (!isSilent && sinceAskedMs < this.#dueMs) return undefined
    this.#openSinceMs ??= nowMs
    return { method: this.#method, session: this.#session }
  }

  /** Cameras that leave such requests unanswered are not known to be gone. */
  signs(nowMs: number, pictures: number | undefined): SignsOfLife {
    const waitedMs = nowMs - (this.#openSinceMs ?? nowMs)
    const isAlive = nowMs - this.#heardMs <= silenceMs + answerMs && waitedMs < answerMs
    const isGone = this.#isOver || (this.#hasAnswered && waitedMs >= answerMs)
    const life = isGone ? 'gone' : isAlive ? 'alive' : 'unknown'
    return { life, pictures, ...(this.#quiet === undefined ? {} : { quiet: this.#quiet }) }
  }
}
