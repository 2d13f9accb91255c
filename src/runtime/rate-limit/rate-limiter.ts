import type { ModelServerConfig } from '../../config/models.js'
import { type Claim, poolOf } from './claims.js'
import { type ResourceLimit, resourcePools } from './resource-pools.js'
import { claimsToGrant, type WaitingClaim } from './turn-decision.js'

/** The turns of one model's instances. */
export interface InstanceTurns {
  /** Resolves when the instance of that number may run, with what gives its resources back; `undefined`: at once. */
  take(index: number): Promise<() => void> | undefined
  /** Lets go of everybody who waits, and forgets the model. Idempotent. */
  close(): void
}

type Waiting = WaitingClaim & Readonly<{ grant: (release: () => void) => void; instance: Instance }>
/** @property next - lowest start of the next run: an instance of priority 2 moves on twice as far with each run. */
type Instance = { readonly claim: Claim; next: number }

/**
 * Triton's rate limiter, `execution_count`: a run waits until the resources that its instance claims are free. Who has run less often,
 * weighted by priority, is first. Other than in Triton, an instance that was idle has no turns saved up.
 */
export class RateLimiter {
  readonly #models = new Map<object, readonly Claim[]>()
  #pools: ReadonlyMap<string, number> = new Map()
  readonly #used = new Map<string, number>()
  #waiting: readonly Waiting[] = []
  /** Start of the last run. */
  #now = 0

  constructor(readonly limits: readonly ResourceLimit[] = []) {}

  /**
   * @param claims - of the instances of a model, by number; empty for a model that needs nothing.
   * @throws ModelConfigError when the claims can never be met
   */
  register(claims: readonly Claim[]): InstanceTurns {
    const model = {}
    this.#pools = resourcePools([...this.#models.values(), claims].flat(), this.limits)
    this.#models.set(model, claims)
    const instances = claims.map((claim): Instance => ({ claim, next: 0 }))
    return {
      take: (index) => {
        const instance = instances[index]
        return instance === undefined || instance.claim.needs.length === 0 ? undefined : this.#take(instance)
      },
      close: () => this.#forget(model, instances),
    }
  }

  #take(instance: Instance): Promise<() => void> {
    return new Promise((grant) => {
      const start = Math.max(this.#now, instance.next)
      this.#waiting = [...this.#waiting, { ...instance.claim, start, grant, instance }]
      this.#serve()
    })
  }

  #serve(): void {
    const free = new Map([...this.#pools].map(([pool, count]) => [pool, count - (this.#used.get(pool) ?? 0)]))
    const granted = claimsToGrant(this.#waiting, free)
    this.#waiting = this.#waiting.filter((waiting) => !granted.includes(waiting))
    for (const waiting of granted) this.#grant(waiting)
  }

  #grant({ instance, start, grant }: Waiting): void {
    const { needs, priority } = instance.claim
    this.#now = Math.max(this.#now, start)
    instance.next = start + priority
    for (const need of needs) this.#use(poolOf(need), need.count)
    let given = false
    grant(() => {
      if (given) return
      given = true
      for (const need of needs) this.#use(poolOf(need), -need.count)
      // After the instance that has ended its run had the chance to ask for the next one.
      process.nextTick(() => this.#serve())
    })
  }

  #use(pool: string, count: number): void {
    this.#used.set(pool, (this.#used.get(pool) ?? 0) + count)
  }

  /** Those who wait are let through without resources: their instances are ending. */
  #forget(model: object, instances: readonly Instance[]): void {
    if (!this.#models.delete(model)) return
    const [own, others] = [true, false].map((mine) =>
      this.#waiting.filter(({ instance }) => instances.includes(instance) === mine),
    )
    this.#waiting = others ?? []
    for (const { grant } of own ?? []) grant(() => undefined)
    this.#pools = resourcePools([...this.#models.values()].flat(), this.limits)
    this.#serve()
  }
}

/** `undefined` where it is off. */
export function rateLimiterOf({ mode, resources }: ModelServerConfig['rateLimit']): RateLimiter | undefined {
  return mode === 'off' ? undefined : new RateLimiter(resources)
}
