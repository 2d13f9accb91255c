import { hostname } from 'node:os'
import { z } from 'zod'
import { clientTlsSchema } from './client-tls.js'
import { kafkaConnectionFields, topicSchema, type KafkaConnection } from './outputs.js'

const nameSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1-64 letters, digits, ".", "_" or "-"')

const urlSchema = z
  .string()
  .refine(
    (text) => /^https?:\/\//i.test(text) && URL.canParse(text) && isBare(new URL(text)),
    'must be http:// or https:// with host and port, without a login, a path or anything behind it',
  )

function isBare({ username, password, pathname, search, hash }: URL): boolean {
  return [username, password, search, hash].every((part) => part === '') && pathname === '/'
}

/** Most slots that a cluster may have. */
export const mostSlots = 8_192

/** Several services that share the cameras. */
export const clusterSchema = z.strictObject({
  id: nameSchema.describe('Name of the cluster, the same on all its nodes.'),
  node: nameSchema
    .default(() => hostname())
    .describe(
      'Name of this node, another one on each and the same over restarts; default: the name of the machine.',
    ),
  url: urlSchema
    .optional()
    .describe(
      'Where the other nodes reach the HTTP of this one; default: the name of the machine and `server.httpPort`.',
    ),
  kafka: z
    .strictObject(kafkaConnectionFields('cluster.kafka'))
    .optional()
    .describe('Brokers that keep the cameras and the group of nodes; default: those of `sinks.kafka`.'),
  topics: z
    .strictObject({
      cameras: topicSchema
        .default('gantry.cameras.v1')
        .describe('Compacted topic of the cameras, with the id as key; it has `slots` partitions.'),
      cameraErrors: topicSchema
        .default('gantry.cameras.errors.v1')
        .describe('Topic of records of cameras that cannot be followed.'),
    })
    .prefault({}),
  createTopics: z.boolean().default(true).describe('Create the topics where they are missing.'),
  replicationFactor: z
    .number()
    .int()
    .min(-1)
    .refine((count) => count !== 0, 'must be -1 or at least 1')
    .default(-1)
    .describe('Of topics created here; -1 takes the broker default.'),
  slots: z
    .number()
    .int()
    .min(1)
    .max(mostSlots)
    .default(256)
    .describe(
      'Parts in which cameras go over nodes, at least 20 for each node; fixed once the topic is there.',
    ),
  tls: clientTlsSchema
    .optional()
    .describe('Whom to trust and who we are, where the other nodes speak https.'),
})
export type ClusterConfig = Readonly<z.infer<typeof clusterSchema>>

/** How the brokers of a cluster are reached, and where that stands in the settings. */
export function clusterKafka(
  { kafka }: ClusterConfig,
  ofSinks: KafkaConnection | undefined,
): Readonly<{ connection: KafkaConnection; setting: string }> | undefined {
  if (kafka !== undefined) return { connection: kafka, setting: 'cluster.kafka' }
  return ofSinks && { connection: ofSinks, setting: 'sinks.kafka' }
}
