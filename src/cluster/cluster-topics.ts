import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import type { ClusterConfig } from '../config/cluster.js'
import { reasonOf } from '../delivery/kafka/kafka-errors.js'
import { GantryError } from '../errors.js'
import { atMost } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'

const closeMs = 3_000
const createMs = 10_000

/** The topic of cameras has another number of slots than this node was told. */
export class SlotsDifferError extends GantryError {
  readonly code = 'GANTRY_CONFIG'
  readonly hint: string
  constructor(topic: string, partitions: number, slots: number) {
    super(`the topic ${topic} has ${partitions} partitions, and cluster.slots is ${slots}`)
    this.name = 'SlotsDifferError'
    this.hint = `Set cluster.slots: ${partitions} on this node. The number is fixed once the topic is there: cameras keep their slots by it.`
  }
}

/** The topic of cameras forgets: what was not written for long is deleted. */
export class TopicForgetsError extends GantryError {
  readonly code = 'GANTRY_CONFIG'
  readonly hint: string
  constructor(topic: string, policy: string) {
    super(`the topic ${topic} has cleanup.policy=${policy}, so that Kafka deletes cameras after a while`)
    this.name = 'TopicForgetsError'
    this.hint = `kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config cleanup.policy=compact`
  }
}

/** What no waiting puts right. */
export const isWrongTopic = (error: unknown): boolean =>
  error instanceof SlotsDifferError || error instanceof TopicForgetsError

/** A topic of the cluster is not there. */
export class ClusterTopicAbsentError extends GantryError {
  readonly code = 'GANTRY_CLUSTER_UNAVAILABLE'
  readonly hint: string
  constructor(topic: string, { slots }: Pick<ClusterConfig, 'slots'>, cause?: unknown) {
    const reason = cause === undefined ? '' : `, and it could not be created: ${reasonOf(cause)}`
    super(`the cluster has no topic ${topic}${reason}`, { cause })
    this.name = 'ClusterTopicAbsentError'
    this.hint = `Create it with ${slots} partitions and cleanup.policy=compact, or allow this node to (cluster.createTopics, ACL of the brokers).`
  }
}

/**
 * Sees that the topics of the cluster are there and fit, and makes those that are missing.
 *
 * @throws SlotsDifferError, TopicForgetsError, ClusterTopicAbsentError; what the client says of brokers that do not answer
 */
export async function checkTopics(kafka: Kafka, config: ClusterConfig, log: Log): Promise<void> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const { cameras, cameraErrors } = config.topics
    const there = new Set(await admin.listTopics())
    const missing = [cameras, cameraErrors].filter((topic) => !there.has(topic))
    if (missing.length > 0) {
      if (!config.createTopics) throw new ClusterTopicAbsentError(missing[0] ?? cameras, config)
      const made = await admin
        .createTopics({
          // The client asks for leaders once, and fails where a partition has none yet: the caller asks again.
          waitForLeaders: false,
          timeout: createMs,
          topics: missing.map((topic) => ({
            topic,
            numPartitions: topic === cameras ? config.slots : 1,
            replicationFactor: config.replicationFactor,
            ...(topic === cameras && { configEntries: [{ name: 'cleanup.policy', value: 'compact' }] }),
          })),
        })
        .catch((error: unknown) => {
          throw new ClusterTopicAbsentError(missing[0] ?? cameras, config, firstOf(error))
        })
      if (made) log.info({ topics: missing, slots: config.slots }, 'topics of the cluster created')
    }
    await checkCameraTopic(admin, config)
  } finally {
    await atMost(
      closeMs,
      admin.disconnect().catch(() => undefined),
    )
  }
}

/** Of several topics at once the client throws one error around those of each. */
function firstOf(error: unknown): unknown {
  const all = error instanceof Error && 'errors' in error ? error.errors : undefined
  return Array.isArray(all) ? (all[0] ?? error) : error
}

/** @throws SlotsDifferError, TopicForgetsError; what the client says of a topic that is not there */
export async function checkCameraTopic(
  admin: Admin,
  { topics: { cameras }, slots }: ClusterConfig,
): Promise<void> {
  const { topics } = await admin.fetchTopicMetadata({ topics: [cameras] })
  const partitions = topics[0]?.partitions.length ?? 0
  // A topic that was made this moment may have none yet.
  if (partitions === 0) throw new ClusterTopicAbsentError(cameras, { slots })
  if (partitions !== slots) throw new SlotsDifferError(cameras, partitions, slots)
  const policy = await cleanupPolicy(admin, cameras)
  if (policy !== undefined && !policy.split(',').includes('compact'))
    throw new TopicForgetsError(cameras, policy)
}

/** Undefined where this login may not ask. */
async function cleanupPolicy(admin: Admin, name: string): Promise<string | undefined> {
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames: ['cleanup.policy'] }]
  const described = await admin.describeConfigs({ resources, includeSynonyms: false }).catch(() => undefined)
  return described?.resources[0]?.configEntries.find(({ configName }) => configName === 'cleanup.policy')
    ?.configValue
}
