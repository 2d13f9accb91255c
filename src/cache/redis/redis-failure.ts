import { redisAdvice } from '../../lifecycle/redis-advice.js'
import { systemLimit } from '../../lifecycle/system-limit.js'

/** What a failed command says about Redis: it refused this command, it cannot serve now, or it did not answer. */
export type RedisFailure = Readonly<{ kind: 'refused' | 'unusable' | 'silent'; reason: string }>

/** Replies after which the connection is of no use: starting up, demoted, locked out, or a node of a cluster. */
const unusable =
  /^(LOADING|READONLY|MASTERDOWN|NOREPLICAS|NOSCRIPT|NOAUTH|WRONGPASS|NOPERM|BUSY|MISCONF|CLUSTERDOWN|MOVED|ASK|CROSSSLOT)\b/

export function redisFailure(error: unknown, setting = 'cache.redis'): RedisFailure {
  const reply = error instanceof Error ? error.message : String(error)
  const replied = error instanceof Error && error.name === 'ReplyError'
  if (!replied) return { kind: 'silent', reason: systemLimit(error)?.reason ?? reply }
  const { reason, fix } = redisAdvice(error, undefined, setting)
  return { kind: unusable.test(reply) ? 'unusable' : 'refused', reason: `${reason}; ${fix}` }
}

/** Decides when failures in a row mean that the far side is gone and not just late once. Opens for good; a new link has a new streak. */
export class FailureStreak {
  #count = 0
  #sinceMs = 0

  constructor(readonly limits: Readonly<{ maxFailures: number; maxMs: number }>) {}

  succeeded(): void {
    this.#count = 0
  }

  /** @returns whether it is time to give up. */
  failed(atMs: number): boolean {
    if (this.#count === 0) this.#sinceMs = atMs
    this.#count += 1
    return this.#count >= this.limits.maxFailures || atMs - this.#sinceMs >= this.limits.maxMs
  }
}
