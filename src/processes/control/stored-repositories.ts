import { hasStoredRepository, mirrorsOf } from '../../buckets/mirror/mirrors-of.js'
import type { RepositoryMirrors } from '../../buckets/mirror/repository-mirrors.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import type { Service } from '../../lifecycle/service.js'
import { createMirrorMetrics } from '../../metrics/mirror-metrics.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'

export type StoredRepositoriesDeps = Readonly<{
  env: Readonly<Record<string, string | undefined>>
  log: Log
  metrics: Pick<ServiceMetrics, 'registry'>
  /** Ends the start. */
  signal: AbortSignal
}>

/**
 * The repositories of a service that lie in object stores, fetched into folders: at the start, with `poll` every `models.pollSeconds`, and
 * whenever somebody asks for what is new. All that reads models reads these folders.
 */
export class StoredRepositories implements Service {
  readonly #ending = new AbortController()
  readonly #mirrors: RepositoryMirrors | undefined
  /** The settings, with folders in place of the URLs. */
  readonly config: PipelineConfig
  #following: Promise<void> = Promise.resolve()

  private constructor(config: PipelineConfig, { env, log, metrics, signal }: StoredRepositoriesDeps) {
    this.config = config
    if (!hasStoredRepository(config)) return
    const ending = this.#ending
    signal.addEventListener('abort', () => ending.abort(signal.reason), { once: true })
    const mirrored = mirrorsOf(config, {
      ...{ reader: 'service', env, log, signal: ending.signal },
      metrics: createMirrorMetrics(metrics.registry),
    })
    this.config = mirrored.config
    this.#mirrors = mirrored.mirrors
  }

  /** @throws ObjectStoreError, SystemLimitError where a store is away and nothing of it was fetched before; the reason of the signal */
  static async open(config: PipelineConfig, deps: StoredRepositoriesDeps): Promise<StoredRepositories> {
    const repositories = new StoredRepositories(config, deps)
    await repositories.#mirrors?.begin(config.engines === 0 && config.models.control === 'poll')
    return repositories
  }

  /** Whether some of the folders are mirrors. */
  get areMirrored(): boolean {
    return this.#mirrors !== undefined
  }

  /** Why what is read is not what the stores have, a sentence each. */
  get reasons(): readonly string[] {
    return this.#mirrors?.reasons ?? []
  }

  /** Fetches what is new. Resolves also where a store is away; then what was fetched before is read. */
  async refresh(): Promise<void> {
    await this.#mirrors?.refresh()
  }

  /** Follows the stores, where the settings say so. */
  start(): void {
    const { control, pollSeconds } = this.config.models
    if (this.#mirrors !== undefined && control === 'poll')
      this.#following = this.#follow(this.#mirrors, pollSeconds * 1_000)
  }

  /** Idempotent, never rejects. */
  async stop(): Promise<void> {
    this.#ending.abort(new Error('the service is stopping'))
    await this.#following
  }

  async #follow(mirrors: RepositoryMirrors, pollMs: number): Promise<void> {
    while (await delay(pollMs, this.#ending.signal)) await mirrors.refresh(true)
  }
}
