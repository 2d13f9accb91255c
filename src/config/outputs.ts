import { z } from 'zod'
import { tlsSwitchSchema } from './client-tls.js'
import { kafkaLoginSchema } from './kafka-login.js'
import { redisSchema } from './redis.js'
import { sinkFilterSchema } from './sink-filter.js'

/** What Apache Kafka takes for the name of a topic. */
export const topicSchema = z
  .string()
  .max(249)
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9._-]+$/, 'must be a name of letters, digits, ".", "_" and "-"')

/** How brokers are reached. @param setting - where the section stands that names them */
export const kafkaConnectionFields = (setting: string) => ({
  brokers: z
    .array(
      z
        .string()
        .regex(/^[^\s:@/?#\\]+:\d{1,5}$/, `must be host:port; a login goes into ${setting}.sasl`)
        .refine((broker) => Number(/\d+$/.exec(broker)?.[0]) <= 65_535, 'the port must be at most 65535'),
    )
    .min(1)
    .describe('Brokers to ask first, as host:port.'),
  clientId: z.string().min(1).default('gantry').describe('Name in the logs of the brokers.'),
  ssl: tlsSwitchSchema
    .default(false)
    .describe('Connect by TLS; a section says whom to trust and who we are.'),
  sasl: kafkaLoginSchema.optional(),
})

export const kafkaSchema = z.strictObject({
  ...kafkaConnectionFields('sinks.kafka'),
  topics: z
    .strictObject({
      detections: topicSchema.default('gantry.detections.v1').describe('Topic of the results.'),
      events: topicSchema
        .default('gantry.events.v1')
        .describe(
          'Topic of what is no result: stretches of watched and blind time, gaps in what was delivered.',
        ),
      deadLetter: z
        .union([topicSchema, z.literal(false)])
        .default('gantry.dead-letter.v1')
        .describe(
          'Topic of records that the brokers refuse for good, with the reason; created when the first one comes. `false`: they are dropped.',
        ),
    })
    .refine(({ detections, events, deadLetter }) => ![detections, events].includes(String(deadLetter)), {
      path: ['deadLetter'],
      message: 'must be another topic than those of results and events',
    })
    .prefault({}),
  createTopics: z
    .boolean()
    .default(true)
    .describe('Create missing topics; their records bear the time of the broker (LogAppendTime).'),
  partitions: z.number().int().min(1).max(1_000).default(6).describe('Partitions of topics created here.'),
  replicationFactor: z.number().int().min(-1).default(-1).describe('-1 takes the broker default.'),
  retentionMs: z
    .number()
    .int()
    .min(60_000)
    .default(7 * 24 * 3600 * 1000)
    .describe('Retention of topics created here.'),
  lingerMs: z.number().min(0).max(10_000).default(20).describe('Longest a record waits for a batch.'),
  maxBatchRecords: z.number().int().min(1).max(100_000).default(500).describe('Most records in one request.'),
  maxQueuedRecords: z
    .number()
    .int()
    .min(1)
    .optional()
    .describe(
      'Replaced by `store.maxBytes`. Records that may wait in memory where they are not stored; default: 10000.',
    ),
  maxQueuedBytes: z
    .number()
    .int()
    .min(64 * 1024)
    .optional()
    .describe('Replaced by `store.maxBytes`. Bytes of the same; default: 32 MiB.'),
  compression: z
    .enum(['none', 'gzip', 'snappy', 'lz4', 'zstd'])
    .default('gzip')
    .describe('Of record batches.'),
  idempotent: z.boolean().default(true).describe('Let the broker drop what a retry sends twice.'),
  filter: sinkFilterSchema.prefault({}),
})
export type KafkaConfig = Readonly<z.infer<typeof kafkaSchema>>
export type KafkaConnection = Pick<KafkaConfig, keyof ReturnType<typeof kafkaConnectionFields>>

/** What may wait in memory alone: results that are not stored, as `store.durability` wants it or as the disk is full. */
export function unstoredLimits({ maxQueuedRecords, maxQueuedBytes }: Partial<KafkaConfig>): Readonly<{
  maxRecords: number
  maxBytes: number
}> {
  return { maxRecords: maxQueuedRecords ?? 10_000, maxBytes: maxQueuedBytes ?? 32 * 1024 ** 2 }
}

export const cacheSchema = z.strictObject({
  redis: redisSchema
    .optional()
    .describe('redis:// URL, or a section; without it results are kept in memory only.'),
  keyPrefix: z.string().max(64).default('gantry:').describe('Start of every key in Redis.'),
  ttlSeconds: z
    .number()
    .int()
    .min(1)
    .default(300)
    .describe('How long the latest result of a silent camera stays.'),
  recentPerCamera: z.number().int().min(1).max(100_000).default(500).describe('Results kept per camera.'),
  recentTtlSeconds: z
    .number()
    .int()
    .min(1)
    .max(30 * 24 * 3600)
    .default(24 * 3600)
    .describe('Age at which a recent result is forgotten, however few there are.'),
  commandTimeoutMs: z
    .number()
    .int()
    .min(5)
    .max(10_000)
    .default(50)
    .describe('Longest a command may take before Redis counts as failing.'),
})
export type CacheConfig = Readonly<z.infer<typeof cacheSchema>>
