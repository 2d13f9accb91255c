import type { Consumer, Kafka } from 'kafkajs'
import { atMost } from '../lifecycle/delay.js'

const joinWithinMs = 15_000
const closeMs = 3_000

export type NodeNoteDeps = Readonly<{
  open: () => Promise<Kafka>
  /** Of the node alone. */
  groupId: string
  /** Any topic that the group may read. */
  topic: string
}>

/**
 * What a node leaves with the brokers under its name for its next start, which its own disk cannot tell if that is lost: the metadata of an
 * offset that a group of its own has committed. It needs no topic, and no right that the node does not have. Brokers forget it once the node
 * was away for `offsets.retention.minutes`, seven days by default.
 */
export class NodeNote {
  #consumer: Promise<Consumer> | undefined

  constructor(readonly deps: NodeNoteDeps) {}

  /** @returns undefined where there is none. @throws what the client says */
  async read(): Promise<string | undefined> {
    const { open, groupId, topic } = this.deps
    const admin = (await open()).admin()
    try {
      await admin.connect()
      const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] })
      return offsets?.partitions.find(({ partition }) => partition === 0)?.metadata || undefined
    } finally {
      await closed(admin)
    }
  }

  /** @throws what the client says */
  async write(metadata: string): Promise<void> {
    const { topic } = this.deps
    this.#consumer ??= this.#join()
    try {
      const consumer = await this.#consumer
      await consumer.commitOffsets([{ topic, partition: 0, offset: '0', metadata }])
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async #join(): Promise<Consumer> {
    const { open, groupId, topic } = this.deps
    const consumer = (await open()).consumer({
      groupId,
      allowAutoTopicCreation: false,
      maxWaitTimeInMs: 500,
      retry: { retries: 3, restartOnFailure: () => Promise.resolve(false) },
    })
    const joined = new Promise<true>((resolve) => {
      consumer.on(consumer.events.GROUP_JOIN, () => {
        // Nothing is read here.
        consumer.pause([{ topic }])
        resolve(true)
      })
    })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ autoCommit: false, eachMessage: () => Promise.resolve() })
    if ((await atMost(joinWithinMs, joined)) === true) return consumer
    await closed(consumer)
    throw new Error(`group ${groupId} was not joined within ${joinWithinMs} ms`)
  }

  async stop(): Promise<void> {
    const consumer = this.#consumer
    this.#consumer = undefined
    if (consumer === undefined) return
    await atMost(
      closeMs + joinWithinMs,
      consumer.then(closed).catch(() => undefined),
    )
  }
}

async function closed(client: Readonly<{ disconnect: () => Promise<void> }>): Promise<void> {
  await atMost(
    closeMs,
    client.disconnect().catch(() => undefined),
  )
}
