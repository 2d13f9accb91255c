import { nowMs } from '../lifecycle/clock.js'
import type { Log } from '../lifecycle/log.js'
import type { RepeatedLines } from '../lifecycle/repeated-lines.js'
import { LogLimiter } from './log-limiter.js'
import type { SessionListener } from './session.js'

/** With the one that tells how many were held back, ten. */
const linesPerSecond = 9

/** Of what is odd about a stream, this many things are told. */
const mostNotes = 20

export type DecoderMessagesOptions = Readonly<{
  log: Log
  listener: Pick<SessionListener, 'warning'>
  /** Those of the camera, over all of its decoders. */
  repeated: RepeatedLines
  /** Takes out what is not to be told: credentials, names of ours. */
  clean: (text: string) => string
}>

/** What one decoder has to say, to whoever reads the log: bounded, since a stream may be at fault a thousand times a second, for ever. */
export class DecoderMessages {
  readonly #limiter = new LogLimiter(linesPerSecond)
  readonly #noted = new Set<string>()

  constructor(readonly options: DecoderMessagesOptions) {}

  /** Damage is a warning of its own; who listens counts and logs it. */
  damage(text: string): void {
    const { listener, clean } = this.options
    if (this.#passes()) listener.warning('decode_error', clean(text))
  }

  message(severity: 'error' | 'warning', text: string): void {
    const { log, repeated, clean } = this.options
    repeated.line(text, (repeats) => {
      if (this.#passes()) log.warn({ severity, ffmpeg: clean(text), ...repeats }, 'decoder message')
    })
  }

  /** Said of every picture, perhaps for ever, and of no consequence: told once, whatever its numbers are. */
  note(text: string): void {
    const kind = text.replace(/\d+/g, '#')
    if (this.#noted.has(kind) || this.#noted.size >= mostNotes) return
    this.#noted.add(kind)
    const { log, clean } = this.options
    log.info({ ffmpeg: clean(text) }, 'the stream is odd, which its pictures do not suffer from')
  }

  /** Tells how many were held back. */
  end(): void {
    const count = this.#limiter.takeSuppressed()
    if (count > 0) this.options.listener.warning('log_suppressed', `${count} decoder messages not logged`)
  }

  #passes(): boolean {
    const passes = this.#limiter.allows(nowMs())
    if (passes) this.end()
    return passes
  }
}
