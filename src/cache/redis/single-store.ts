import type { RedisClient } from '../../lifecycle/redis-client.js'
import { pageReply, runScript, textLists } from './run-script.js'
import { forgetScript, latestScript, pageScript, putScript } from './scripts.js'
import type { Foreign, PageQuery, ResultStore, StoredPage, StoredPut } from './result-store.js'

/** On one server every operation is one script. */
export class SingleStore implements ResultStore {
  readonly #base: string

  constructor(
    readonly client: RedisClient,
    keyPrefix: string,
  ) {
    this.#base = `${keyPrefix}v1:`
  }

  async put({ cameraId, json, key, ttlMs, capacity, expired, recentTtlMs }: StoredPut): Promise<Foreign> {
    const args = [json, key, ttlMs, capacity, expired, recentTtlMs]
    const [, foreign] = textLists(await runScript(this.client, putScript, this.#keysOf(cameraId), args))
    return foreign ?? []
  }

  async latest(cameraId: string): ReturnType<ResultStore['latest']> {
    const reply = await runScript(this.client, latestScript, this.#keysOf(cameraId).slice(0, 1), [])
    return latestReply(reply)
  }

  async page({ cameraId, atLeast, below, look, most, contains }: PageQuery): Promise<StoredPage> {
    const index = `${this.#base}index${cameraId === undefined ? '' : `:${cameraId}`}`
    const args = [atLeast, below, look, most, contains, `${this.#base}results:`, '']
    return pageReply(await runScript(this.client, pageScript, [index], args))
  }

  async forget(cameraId: string): Promise<Foreign> {
    const [, foreign] = textLists(await runScript(this.client, forgetScript, this.#keysOf(cameraId), []))
    return foreign ?? []
  }

  #keysOf(cameraId: string): string[] {
    const ofCamera = ['latest', 'index', 'results'].map((name) => `${this.#base}${name}:${cameraId}`)
    return [...ofCamera, `${this.#base}index`]
  }
}

/** What {@link latestScript} says. */
export function latestReply(reply: unknown): Awaited<ReturnType<ResultStore['latest']>> {
  const [foreign, json] = Array.isArray(reply) ? (reply as unknown[]) : []
  return {
    json: typeof json === 'string' ? json : undefined,
    foreign: Array.isArray(foreign) ? foreign.map(String) : [],
  }
}
