import { status } from '@grpc/grpc-js'
import { backoffMs } from '../../lifecycle/backoff.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import type { PlainLog } from '../../lifecycle/thread-log.js'
import type { Message } from '../../kserve/grpc-schema.js'
import { KserveEndpoint } from './kserve-endpoint.js'
import { grpcCode, remoteError } from './kserve-errors.js'
import { modelReady, type RemoteMethod } from './kserve-messages.js'
import type { KserveSettings } from './kserve-settings.js'

export type CallOptions = Readonly<{
  /** Doing it twice does no harm. */
  retry: boolean
  signal: AbortSignal | undefined
}>

const retryBackoff = { baseMs: 50, capMs: 1_000 }

/**
 * The addresses of a remote model. A call goes to the one with the fewest calls under way among those that answer; one that does
 * not is left alone until a probe finds it ready again.
 */
export class KserveCluster {
  readonly #endpoints: readonly KserveEndpoint[]
  readonly #closed = new AbortController()
  #turn = 0

  constructor(
    readonly settings: KserveSettings,
    readonly log: PlainLog,
  ) {
    this.#endpoints = settings.addresses.map((address) => new KserveEndpoint(address, settings))
  }

  /** For people and tests: which addresses answer. */
  get health(): Readonly<Record<string, boolean>> {
    return Object.fromEntries(this.#endpoints.map(({ address, healthy }) => [address, healthy]))
  }

  /**
   * Calls until one address answers, the time is over or the retries are spent.
   *
   * Only failures to reach a server are tried again: what a server has refused it would refuse again, and after a time-out there is
   * no time left.
   *
   * @throws ServingError
   */
  async call<Answer>(
    method: RemoteMethod<Answer>,
    message: Message,
    { retry, signal }: CallOptions,
  ): Promise<Answer> {
    const { timeoutMs, retries } = this.settings
    const untilMs = nowMs() + timeoutMs
    const tried = new Set<KserveEndpoint>()
    for (let attempt = 0; ; attempt++) {
      const endpoint = this.#pick(tried)
      tried.add(endpoint)
      try {
        return await endpoint.call(method, message, Math.max(1, untilMs - nowMs()), signal)
      } catch (error) {
        const code = grpcCode(error)
        if (code === status.UNAVAILABLE || code === status.DEADLINE_EXCEEDED) this.#lost(endpoint, error)
        const again = retry && code === status.UNAVAILABLE && attempt < retries && signal?.aborted !== true
        const waitMs = tried.size < this.#endpoints.length ? 0 : backoffMs(attempt, retryBackoff)
        if (!again || nowMs() + waitMs >= untilMs)
          throw remoteError(endpoint.address, this.settings.model, error)
        if (!(await delay(waitMs, this.#closed.signal)))
          throw remoteError(endpoint.address, this.settings.model, error)
      }
    }
  }

  close(): void {
    this.#closed.abort()
    for (const endpoint of this.#endpoints) endpoint.close()
  }

  /** An address that was not tried yet before one that was, then one that answers, then the least busy; equals take turns. */
  #pick(tried: ReadonlySet<KserveEndpoint>): KserveEndpoint {
    const count = this.#endpoints.length
    const turn = this.#turn++
    const cost = (endpoint: KserveEndpoint) =>
      (endpoint.healthy ? 0 : 1e6) + (tried.has(endpoint) ? 1e5 : 0) + endpoint.inFlight
    let best = this.#endpoints[turn % count]!
    for (let i = 1; i < count; i++) {
      const candidate = this.#endpoints[(turn + i) % count]!
      if (cost(candidate) < cost(best)) best = candidate
    }
    return best
  }

  #lost(endpoint: KserveEndpoint, error: unknown): void {
    if (!endpoint.healthy || this.#closed.signal.aborted) return
    endpoint.healthy = false
    this.log.warn(
      { address: endpoint.address, err: error },
      'remote model server does not answer, it is left out',
    )
    void this.#probe(endpoint)
  }

  async #probe(endpoint: KserveEndpoint): Promise<void> {
    const { model: name, version, probeMs } = this.settings
    while (await delay(probeMs, this.#closed.signal)) {
      try {
        const deadlineMs = Math.max(1_000, probeMs)
        if (!(await endpoint.call(modelReady, { name, version }, deadlineMs, undefined))) continue
        endpoint.healthy = true
        this.log.info({ address: endpoint.address }, 'remote model server answers again')
        return
      } catch {
        // Asked again after the next wait.
      }
    }
  }
}
