import { redactText } from '../config/redact.js'
import { systemLimit } from '../lifecycle/system-limit.js'
import { failureBy } from './failure-reason.js'
import type { OpenSession, Session, SessionEnd, SessionListener } from './session.js'
import { isRefusal } from './source-errors.js'

/** A session that first looks where its pictures come from. What is not opened ends it for good, what the system says of it until later. */
export class LateSession implements Session {
  readonly ended: Promise<SessionEnd>
  #session: Session | undefined
  #stopped = false

  /** @param find - rejects with why nothing is opened. */
  constructor(
    readonly find: () => Promise<OpenSession>,
    readonly listener: SessionListener,
  ) {
    this.ended = this.#run()
  }

  stop(): void {
    this.#stopped = true
    this.#session?.stop()
  }

  cpuSeconds(): number {
    return this.#session?.cpuSeconds() ?? 0
  }

  waitsForKey(silentMs: number): boolean {
    return this.#session?.waitsForKey?.(silentMs) ?? false
  }

  async #run(): Promise<SessionEnd> {
    try {
      const open = await this.find()
      if (this.#stopped) return { kind: 'failed', reason: 'stopped', retry: 'normal' }
      this.#session = open(this.listener)
    } catch (error) {
      const limit = systemLimit(error)
      if (limit !== undefined) return { kind: 'failed', ...failureBy(limit) }
      const reason = redactText((error as Error).message)
      return { kind: 'failed', reason, retry: isRefusal(error) ? 'never' : 'slow' }
    }
    return this.#session.ended
  }
}
