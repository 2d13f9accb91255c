import { z } from 'zod'
import { tlsSwitchSchema } from './client-tls.js'
import { redisUrlSchema } from './redis-url.js'
import { holdsLogin } from './url-login.js'

const hostPortSchema = z
  .string()
  .regex(
    /^(\[[0-9a-f:.]+\]|[^\s:@/?#\\[\]]+):\d{1,5}$/i,
    'must be host:port; a login goes into username and password',
  )
  .refine((place) => Number(/\d+$/.exec(place)?.[0]) <= 65_535, 'the port must be at most 65535')

const loginText = z.string().min(1).optional()

const redisSectionSchema = z
  .strictObject({
    url: redisUrlSchema().optional().describe('One server, as redis:// or rediss:// URL.'),
    nodes: z
      .array(hostPortSchema)
      .min(1)
      .optional()
      .describe('Nodes of a Redis cluster to ask first, as host:port.'),
    sentinels: z
      .array(hostPortSchema)
      .min(1)
      .optional()
      .describe('Sentinels that know which server is the master, as host:port.'),
    name: loginText.describe('What the sentinels call the master.'),
    username: loginText.describe('User of the ACL.'),
    password: loginText.describe('Write ${NAME} or ${file:PATH}, not the password itself.'),
    sentinelUsername: loginText.describe('User of the ACL of the sentinels.'),
    sentinelPassword: loginText.describe('Of the sentinels, where they ask for one.'),
    database: z
      .number()
      .int()
      .min(0)
      .max(65_535)
      .optional()
      .describe('Number of the database behind `sentinels`; that of a `url` stands in it.'),
    tls: tlsSwitchSchema.optional().describe('Connect by TLS, also to sentinels.'),
  })
  .superRefine((redis, context) => {
    for (const { setting, message } of redisFaults(redis))
      context.addIssue({ code: 'custom', path: setting === '' ? [] : [setting], message })
  })

/** A server of Redis by its URL, or a section for everything that a URL cannot say. */
export const redisSchema = z.union([redisUrlSchema(), redisSectionSchema])
export type RedisSection = Readonly<z.infer<typeof redisSectionSchema>>
export type RedisConfig = string | RedisSection

function* redisFaults(
  redis: z.infer<typeof redisSectionSchema>,
): Generator<{ setting: string; message: string }> {
  const { url, nodes, sentinels, name, username, password, database, tls } = redis
  const ways = Object.entries({ url, nodes, sentinels }).filter(([, way]) => way !== undefined)
  if (ways.length === 0)
    yield { setting: '', message: 'says no server: set url, nodes (a cluster) or sentinels with name' }
  const [, second] = ways
  if (second !== undefined)
    yield {
      setting: second[0],
      message: `stands beside ${ways[0]?.[0]}: keep one of url, nodes and sentinels`,
    }
  if (sentinels !== undefined && name === undefined)
    yield { setting: 'sentinels', message: 'needs name beside it: what they call the master' }
  for (const setting of ['name', 'sentinelUsername', 'sentinelPassword'] as const)
    if (redis[setting] !== undefined && sentinels === undefined)
      yield { setting, message: 'is for sentinels, and there are none' }
  if (username !== undefined && password === undefined)
    yield { setting: 'username', message: 'needs password beside it' }
  if (url !== undefined && holdsLogin(url) && (username !== undefined || password !== undefined))
    yield {
      setting: password === undefined ? 'username' : 'password',
      message: 'stands beside a login in url: keep one of them',
    }
  if (database !== undefined && sentinels === undefined)
    yield {
      setting: 'database',
      message:
        nodes === undefined
          ? 'stands in url: redis://host:6379/2'
          : 'is for one server: a cluster has only 0',
    }
  if (url !== undefined && /^rediss:/i.test(url) && tls === false)
    yield {
      setting: 'tls',
      message: 'is false beside a rediss:// URL, which means TLS: write redis://, or leave tls out',
    }
}

/** What a Redis is called in lines for people: without its login. */
export function redisTitle(redis: RedisConfig, shown: (url: string) => string): string {
  if (typeof redis === 'string') return shown(redis)
  if (redis.url !== undefined) return shown(redis.url)
  if (redis.nodes !== undefined) return `cluster ${redis.nodes.join(', ')}`
  return `${redis.name ?? ''} of sentinels ${(redis.sentinels ?? []).join(', ')}`
}
