import { atMost } from '../../lifecycle/delay.js'
import type { RedisClient } from '../../lifecycle/redis-client.js'
import { cameraOfKey, type OrderKey } from '../order-key.js'
import { flatTexts, pageReply, runScript, textLists } from './run-script.js'
import {
  forgetScript,
  indexScript,
  keysScript,
  latestScript,
  type LuaScript,
  pageScript,
  putScript,
  readScript,
} from './scripts.js'
import { latestReply } from './single-store.js'
import type { Foreign, PageQuery, ResultStore, StoredPage, StoredPut, StoredResult } from './result-store.js'

/** Form of an order key; anything else in the index is not ours. */
const orderKeyForm = /^\d+:[^:]+:\d+$/

/**
 * In a cluster the keys of a camera lie in one slot, so that a result is still written and read as a whole. The index of all cameras lies in
 * a slot of its own: it is written before the result, and what it names and is not there is passed over.
 */
export class ClusterStore implements ResultStore {
  readonly #base: string
  /** Results that went, for the index of all to learn with the next put. */
  #gone: string[] = []

  constructor(
    readonly client: RedisClient,
    keyPrefix: string,
    readonly commandTimeoutMs: number,
  ) {
    this.#base = `${keyPrefix}v1:`
  }

  async put({ cameraId, json, key, ttlMs, capacity, expired, recentTtlMs }: StoredPut): Promise<Foreign> {
    const gone = this.#gone
    this.#gone = []
    const ofIndex = await this.#run(indexScript, [this.#index], [expired, recentTtlMs, key, ...gone])
    const args = [json, key, ttlMs, capacity, expired, recentTtlMs]
    const [nowGone = [], foreign = []] = textLists(await this.#run(putScript, this.#keysOf(cameraId), args))
    this.#gone.push(...nowGone)
    return [...foreign, ...(ofIndex as string[])]
  }

  async latest(cameraId: string): ReturnType<ResultStore['latest']> {
    return latestReply(await this.#run(latestScript, this.#keysOf(cameraId).slice(0, 1), []))
  }

  async page(query: PageQuery): Promise<StoredPage> {
    const { cameraId, atLeast, below, look, most, contains } = query
    if (cameraId === undefined) return this.#pageOfAll(query)
    const index = `${this.#base}index:{${cameraId}}`
    const args = [atLeast, below, look, most, contains, `${this.#base}results:{`, '}']
    return pageReply(await this.#run(pageScript, [index], args))
  }

  async forget(cameraId: string): Promise<Foreign> {
    const [gone = [], foreign = []] = textLists(await this.#run(forgetScript, this.#keysOf(cameraId), []))
    // In pieces, as a command with all of them holds the server up.
    for (let at = 0; at < gone.length; at += 500)
      await this.client.zrem(this.#index, ...gone.slice(at, at + 500))
    return foreign
  }

  async #pageOfAll({ atLeast, below, look, most, contains }: PageQuery): Promise<StoredPage> {
    const { foreign, rest: keys } = flatTexts(
      await this.#run(keysScript, [this.#index], [atLeast, below, look]),
    )
    const ours = keys.filter((key) => orderKeyForm.test(key))
    const strange = ours.length < keys.length ? [this.#index] : []
    const byCamera = new Map<string, OrderKey[]>()
    for (const key of ours) byCamera.set(cameraOfKey(key), [...(byCamera.get(cameraOfKey(key)) ?? []), key])
    const json = new Map<string, string>()
    const ofCameras = await Promise.all(
      [...byCamera].map(async ([camera, wanted]) => {
        const name = `${this.#base}results:{${camera}}`
        const { foreign: others, rest } = flatTexts(await this.#run(readScript, [name], wanted))
        wanted.forEach((key, index) => json.set(key, rest[index] ?? ''))
        return others
      }),
    )
    const results: StoredResult[] = []
    let looked = 0
    let last = ''
    for (const key of keys) {
      looked += 1
      last = key
      const text = json.get(key) ?? ''
      if (text === '' || !text.includes(contains)) continue
      results.push({ key, json: text })
      if (results.length >= most) break
    }
    return { looked, last, results, foreign: [...foreign, ...strange, ...ofCameras.flat()] }
  }

  /** The client tries again behind redirections, for which it has no time limit of its own. */
  async #run(script: LuaScript, keys: readonly string[], args: readonly (string | number | Buffer)[]) {
    const reply = await atMost(this.commandTimeoutMs, runScript(this.client, script, keys, args))
    if (reply === undefined) throw new Error('Command timed out')
    return reply
  }

  get #index(): string {
    return `${this.#base}index`
  }

  #keysOf(cameraId: string): string[] {
    return ['latest', 'index', 'results'].map((name) => `${this.#base}${name}:{${cameraId}}`)
  }
}
