import { z } from 'zod'
import type { RedisClient } from '../../lifecycle/redis-client.js'
import type { StoredPage, StoredResult } from './result-store.js'
import type { LuaScript } from './scripts.js'

/** Runs a script by its name, and by its text where the server does not know it yet or any more. */
export async function runScript(
  client: RedisClient,
  { lua, sha }: LuaScript,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, ...args)
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return client.eval(lua, keys.length, ...keys, ...args)
  }
}

const listsReply = z.array(z.array(z.coerce.string()))

/** A reply of several lists. */
export function textLists(reply: unknown): readonly (readonly string[])[] {
  return listsReply.parse(reply)
}

const texts = z.array(z.coerce.string())
const flatReply = z.tuple([texts]).rest(z.coerce.string())

/** A list of keys that are not ours, then texts. */
export function flatTexts(reply: unknown): { foreign: readonly string[]; rest: readonly string[] } {
  const [foreign, ...rest] = flatReply.parse(reply)
  return { foreign, rest }
}

const pageForm = z.tuple([texts, z.number(), z.string()]).rest(z.string())

export function pageReply(reply: unknown): StoredPage {
  const [foreign, looked, last, ...flat] = pageForm.parse(reply)
  const results: StoredResult[] = []
  for (let i = 0; i + 1 < flat.length; i += 2) results.push({ key: flat[i] ?? '', json: flat[i + 1] ?? '' })
  return { looked, last, results, foreign }
}
