import type { Admin, Kafka } from 'kafkajs'
import type { KafkaConfig } from '../../config/outputs.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { reasonOf } from './kafka-errors.js'
import type { PartitionLeaders } from './partition-leaders.js'

const createDeadlineMs = 10_000
/** For what is good to know and not waited for. */
const askDeadlineMs = 2_000

/** Topics that records go to, each once. */
export function recordTopics({ topics }: Pick<KafkaConfig, 'topics'>): readonly string[] {
  return [...new Set([topics.detections, topics.events])]
}

/** What a cluster has of topics, asked by one client. */
export class KafkaTopics {
  constructor(
    readonly kafka: Pick<Kafka, 'admin'>,
    readonly config: KafkaConfig,
    readonly log: Log,
  ) {}

  /** Creates the topics of records that are missing, where the settings want that, and learns who leads them. @throws when no broker is reached */
  async prepare(leaders: PartitionLeaders): Promise<void> {
    const topics = recordTopics(this.config)
    await this.#ask(async (admin) => {
      if (this.config.createTopics) await this.#create(admin, topics, this.config.partitions)
      await atMost(askDeadlineMs, Promise.all(topics.map((topic) => learnLeaders(admin, topic, leaders))))
    })
  }

  /** Whether there is such a topic; true where that cannot be told now. @throws when no broker is reached */
  async has(topic: string): Promise<boolean> {
    return this.#ask(async (admin) => (await listed(admin))?.has(topic) ?? true)
  }

  /** Creates it where the settings want that. @returns whether it is there. @throws when no broker is reached */
  async ensure(topic: string, partitions: number): Promise<boolean> {
    return this.#ask(async (admin) => {
      if (this.config.createTopics) await this.#create(admin, [topic], partitions)
      return (await listed(admin))?.has(topic) ?? true
    })
  }

  async #ask<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const admin = this.kafka.admin()
    await admin.connect()
    try {
      return await work(admin)
    } finally {
      void admin.disconnect().catch(() => undefined)
    }
  }

  /** Not being allowed to create topics is no reason not to send: they may be there. */
  async #create(admin: Admin, topics: readonly string[], numPartitions: number): Promise<void> {
    try {
      const { replicationFactor, retentionMs } = this.config
      const there = new Set(await admin.listTopics())
      const missing = topics.filter((topic) => !there.has(topic))
      if (missing.length === 0) return
      const configEntries = [
        { name: 'retention.ms', value: String(retentionMs) },
        { name: 'cleanup.policy', value: 'delete' },
        // The time of the broker: it never refuses a record for a clock that differs from its own.
        { name: 'message.timestamp.type', value: 'LogAppendTime' },
      ]
      const created = await admin.createTopics({
        topics: missing.map((topic) => ({ topic, numPartitions, replicationFactor, configEntries })),
        timeout: createDeadlineMs,
      })
      if (created)
        this.log.info({ topics: missing, partitions: numPartitions, retentionMs }, 'topics created')
    } catch (error) {
      this.log.warn({ reason: reasonOf(error) }, 'topic could not be created')
    }
  }
}

/** Undefined where the client library cannot tell: as long as any partition of the cluster has no leader. */
async function listed(admin: Admin): Promise<ReadonlySet<string> | undefined> {
  return admin.listTopics().then(
    (topics) => new Set(topics),
    () => undefined,
  )
}

/** It is asked in vain for a topic that is not there, has a partition without a leader, or is not ours to see. */
async function learnLeaders(admin: Admin, topic: string, leaders: PartitionLeaders): Promise<void> {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    for (const { name, partitions } of topics) leaders.learn(name, partitions)
  } catch {
    // Who leads is learnt with the first send, then.
  }
}
