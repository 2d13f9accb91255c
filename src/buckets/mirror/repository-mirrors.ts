import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'
import type { MirrorConfig } from '../../config/models.js'
import { isS3UrlFault, parseS3Url } from '../../config/s3-url.js'
import { backoffMs } from '../../lifecycle/backoff.js'
import { wallMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import type { MirrorMetrics } from '../../metrics/mirror-metrics.js'
import { ObjectStore } from '../object-store.js'
import { ObjectStoreError } from '../s3-errors.js'
import { s3Settings } from '../s3-settings.js'
import { MirrorFolder, type MirrorReader } from './mirror-folder.js'
import { RepositoryMirror } from './repository-mirror.js'

/** At the start a store that is away is waited for, where nothing was fetched before. */
const startTries = 4
const startWaits = { baseMs: 500, capMs: 4_000 }

export type RepositoryMirrorsOptions = Readonly<{
  /** `s3://` URLs. */
  urls: readonly string[]
  mirror: MirrorConfig
  /** Folder that holds all mirrors; absolute. */
  dir: string
  reader: MirrorReader
  env: Readonly<Record<string, string | undefined>>
  log: Log
  /** Absent where nobody reads them. */
  metrics?: MirrorMetrics
  signal: AbortSignal
}>

type Mirrored = {
  readonly url: string
  readonly mirror: RepositoryMirror
  readonly path: string
  /** Why it is not as the store has it, and since when. */
  failure: Readonly<{ error: Error; since: string }> | undefined
}

/** The mirrors of all repositories that lie in object stores. */
export class RepositoryMirrors {
  readonly #all: readonly Mirrored[]

  /** @throws ObjectStoreError for a URL or an environment that names no store */
  constructor(readonly options: RepositoryMirrorsOptions) {
    this.#all = [...new Set(options.urls)].map((url) => mirrorOf(url, options))
  }

  /** Where a repository is read. */
  folderOf(url: string): string {
    const found = this.#all.find((each) => each.url === url)
    if (found === undefined) throw new TypeError(`no mirror was made of ${url}`)
    return found.path
  }

  /** Why they are not as the stores have them, a sentence each. */
  get reasons(): readonly string[] {
    return this.#all.flatMap(({ url, failure }) =>
      failure === undefined
        ? []
        : [
            `model repository ${url} is read as it was fetched before, since ${failure.since}: ${failure.error.message}`,
          ],
    )
  }

  /**
   * Fetches what the stores have. One that is away is read as it was fetched before.
   *
   * @param mayWait - one that is away and of which nothing was fetched is not refused: its folder is not there yet.
   * @throws ObjectStoreError, SystemLimitError where there is nothing to read
   */
  async begin(mayWait = false): Promise<void> {
    await Promise.all(this.#all.map((each) => this.#begin(each, mayWait)))
  }

  /** For who may ask nothing of the stores. @throws ObjectStoreError where nothing was fetched before */
  async useFetched(): Promise<void> {
    for (const { url, mirror } of this.#all)
      if (!(await mirror.isThere()))
        throw new ObjectStoreError(`nothing of ${url} was fetched yet`, 'Do it again with the network.')
  }

  /** Fetches what is new. What cannot be fetched is told in {@link reasons} and in the log. Never rejects. */
  async refresh(settled = false): Promise<void> {
    await Promise.all(
      this.#all.map(async (each) => {
        try {
          await each.mirror.refresh(settled)
          this.#succeeded(each)
        } catch (error) {
          this.#failed(each, error as Error)
        }
      }),
    )
  }

  async #begin(each: Mirrored, mayWait: boolean): Promise<void> {
    for (let attempt = 0; ; attempt += 1)
      try {
        await each.mirror.refresh()
        return this.#succeeded(each)
      } catch (error) {
        const { signal } = this.options
        if (signal.aborted) throw error
        if (await each.mirror.isThere()) return this.#failed(each, error as Error)
        const mayPass = error instanceof ObjectStoreError && error.retryable
        if (mayPass && mayWait) return this.#failed(each, error)
        if (!mayPass || attempt + 1 >= startTries) throw error
        this.options.log.warn({ repository: each.url, err: error }, 'the object store is waited for')
        await delay(backoffMs(attempt, startWaits), signal)
      }
  }

  #succeeded(each: Mirrored): void {
    const { metrics } = this.options
    metrics?.looks.inc({ repository: each.url, result: 'good' })
    metrics?.lastGood.set({ repository: each.url }, wallMs() / 1_000)
    if (each.failure === undefined) return
    each.failure = undefined
    this.options.log.info({ repository: each.url }, 'the object store is read again')
  }

  #failed(each: Mirrored, error: Error): void {
    if (this.options.signal.aborted) return
    this.options.metrics?.looks.inc({ repository: each.url, result: 'failed' })
    // The same is told once.
    if (each.failure?.error.message !== error.message)
      this.options.log.warn(
        { repository: each.url, err: error },
        'a model repository cannot be fetched: what was fetched before is read',
      )
    each.failure = { error, since: each.failure?.since ?? new Date(wallMs()).toISOString() }
  }
}

function mirrorOf(url: string, options: RepositoryMirrorsOptions): Mirrored {
  const { mirror, dir, reader, env, log, metrics, signal } = options
  const place = parseS3Url(url)
  if (isS3UrlFault(place)) throw new ObjectStoreError(place.message, place.hint)
  const settings = s3Settings(env, place.endpoint)
  const { bucket } = place
  const prefix = place.key.replace(/^\/+|\/+$/g, '')
  const id = createHash('sha256')
    .update(JSON.stringify([settings.endpoint, bucket, prefix]))
    .digest('hex')
  // Clients are told of a repository by the last names of its path.
  const name = (prefix === '' ? bucket : basename(prefix)).slice(0, 64).replace(/^\.+|[^\w.-]/g, '_')
  const folder = new MirrorFolder(join(dir, `${bucket}-${id.slice(0, 16)}`), reader, name)
  for (const result of ['good', 'failed']) metrics?.looks.inc({ repository: url, result }, 0)
  metrics?.fetchedBytes.inc({ repository: url }, 0)
  metrics?.lastGood.set({ repository: url }, 0)
  return {
    url,
    mirror: new RepositoryMirror({
      url,
      bucket,
      prefix: prefix === '' ? '' : `${prefix}/`,
      store: new ObjectStore(settings, signal),
      folder,
      fetchesAtATime: mirror.fetchesAtATime,
      refreshAtMostMs: mirror.refreshSeconds * 1_000,
      onFetched: (bytes) => metrics?.fetchedBytes.inc({ repository: url }, bytes),
      log,
      signal,
    }),
    path: folder.path,
    failure: undefined,
  }
}
