import { readdirSync } from 'node:fs'
import type { Log } from './log.js'
import { limitsOf, shortage } from './system-limit.js'

const everyMs = 5_000
/** Share of the limit from which it is told, and under which it is over. */
const [tellAt, overAt] = [0.9, 0.8]

/**
 * Tells in the log when this process comes near its limit of open files, and when that is over. Many things just fail to come then:
 * connections, for instance, are ended by the kernel without an error here.
 */
export class DescriptorWatch {
  readonly #timer: NodeJS.Timeout
  #isShort = false

  constructor(
    readonly log: Log,
    readonly periodMs = everyMs,
  ) {
    this.#timer = setInterval(() => this.#look(), this.periodMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const { share, ...figures } = inUse()
    if (!this.#isShort && share >= tellAt) {
      this.#isShort = true
      const hint = 'Raise the limit: LimitNOFILE= in the systemd unit, ulimits in Compose, or ulimit -n.'
      this.log.error({ ...figures, hint }, 'file descriptors run out')
    } else if (this.#isShort && share < overAt) {
      this.#isShort = false
      this.log.info(figures, 'there are file descriptors again')
    }
  }
}

function inUse(): Readonly<{ openFiles?: number; limit?: number; share: number; reason?: string }> {
  try {
    const openFiles = readdirSync('/proc/self/fd').length - 1
    const limit = limitsOf('openFiles').soft
    return limit === undefined ? { openFiles, share: 0 } : { openFiles, limit, share: openFiles / limit }
  } catch {
    const reason = shortage()?.reason
    return reason === undefined ? { share: 0 } : { share: 1, reason }
  }
}
