import { systemLimit } from './system-limit.js'
import { tlsFailure, type ConnectionAdvice } from './tls-failure.js'

/** What a reply that refuses a command means for the settings. */
const replies: readonly Readonly<{ words: RegExp; meaning: string; fix: (setting: string) => string }>[] = [
  {
    words:
      /^(WRONGPASS|NOAUTH)\b|invalid username-password pair|AUTH failed|without any password configured/i,
    meaning: 'the login is refused',
    fix: (setting) => `correct username and password of ${setting}`,
  },
  {
    words: /^NOPERM\b|user executing the script can't/i,
    meaning: 'the user may not do it',
    fix: () =>
      'give the user of the ACL: ~<keyPrefix>* +@read +@write +@scripting +@connection, in a cluster +cluster|slots too',
  },
  {
    words: /^READONLY\b/,
    meaning: 'it is a replica, which takes no writes',
    fix: (setting) => `name the master in ${setting}, or the sentinels that know it: ${setting}.sentinels`,
  },
  {
    words: /^OOM\b/,
    meaning: 'it is full and may drop nothing',
    fix: () => 'raise maxmemory of Redis, or set its maxmemory-policy to volatile-ttl or allkeys-lru',
  },
  {
    words: /^MISCONF\b/,
    meaning: 'it takes no writes, since it cannot save to its disk',
    fix: () => 'look at the log of Redis and make room on its disk',
  },
  {
    words: /^NOREPLICAS\b/,
    meaning: 'it takes no writes without its replicas',
    fix: () => 'start them, or lower min-replicas-to-write of Redis',
  },
  {
    words: /^(MOVED|ASK|CROSSSLOT|CLUSTERDOWN)\b/,
    meaning: 'it is a node of a cluster',
    fix: (setting) =>
      `list nodes of the cluster in ${setting}.nodes, and look at its state: redis-cli cluster info`,
  },
  {
    words: /cluster support disabled/i,
    meaning: 'it is no node of a cluster',
    fix: (setting) => `name it in ${setting}.url instead of ${setting}.nodes`,
  },
  {
    words: /unknown command.*(sentinel)/i,
    meaning: 'it is no sentinel',
    fix: (setting) => `name the port of sentinels in ${setting}.sentinels (26379)`,
  },
  {
    words: /All sentinels are unreachable/i,
    meaning: 'no sentinel names a master',
    fix: (setting) => `look at ${setting}.sentinels, sentinelPassword and name`,
  },
  {
    words: /unknown command|unknown subcommand/i,
    meaning: 'it does not know a command that is needed',
    fix: () => 'use Redis 6.2 or newer with scripts, without renamed commands',
  },
  {
    words: /^(LOADING|MASTERDOWN|BUSY)\b/,
    meaning: 'it cannot serve yet',
    fix: () => 'wait until it has loaded its data and found its master',
  },
]

/**
 * Why Redis does not serve, in words that name the setting.
 *
 * @param error - of ioredis
 * @param ofConnection - the error of a connection before it, where there is one: what comes later says less
 * @param setting - where it stands in the settings: `cache.redis`
 */
export function redisAdvice(error: unknown, ofConnection: unknown, setting: string): ConnectionAdvice {
  const candidates = [ofConnection, error].filter((one) => one !== undefined)
  for (const candidate of candidates) {
    const tls = tlsFailure(candidate, `${setting}.tls`, 'redis:// in place of rediss://')
    if (tls !== undefined) return tls
  }
  const texts = candidates.map(textOf)
  for (const text of texts) {
    const found = replies.find(({ words }) => words.test(text))
    if (found !== undefined) return { reason: `${found.meaning} (${text})`, fix: found.fix(setting) }
  }
  const limit = candidates.map(systemLimit).find((one) => one !== undefined)
  const reason =
    limit?.reason ?? texts.find((text) => text !== 'Connection is closed.') ?? 'connection is closed'
  return { reason, fix: limit?.hint ?? `start Redis, or correct ${setting}` }
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // What a cluster says of its nodes lies under the error.
  const inner = 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error
  // Behind the words of a reply stands the place in a script of ours.
  return inner.message.replace(/ script: [0-9a-f]{40}.*$/, '')
}
