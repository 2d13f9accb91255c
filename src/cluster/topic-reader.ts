import { randomUUID } from 'node:crypto'
import type { Consumer, Kafka } from 'kafkajs'
import { atMost, unlessAborted } from '../lifecycle/delay.js'

/** A record of a topic as it was read. */
export type TopicRecord = Readonly<{
  key: string
  /** `null`: a tombstone. */
  value: Uint8Array | null
  partition: number
  offset: bigint
  header: (name: string) => string | undefined
}>

/** A consumer that has failed so often is given up, and opened anew by whoever has it. */
export const consumerRetry = {
  retries: 8,
  initialRetryTime: 100,
  maxRetryTime: 1_000,
  restartOnFailure: () => Promise.resolve(false),
}

const closeMs = 3_000
/** Rounds of fetching without a record, from each broker, that are taken for the end of what compaction has thinned out. */
const emptyRounds = 2

/**
 * Reads a topic whole, from its first record on, and goes on with what comes: each reader is a consumer group of its own, which commits nothing.
 */
export class TopicReader {
  /** By partition, the offset behind the last record that was read. */
  readonly #next = new Map<number, bigint>()
  readonly #waiting = new Set<() => void>()
  /** Partitions and where they ended when reading began. */
  #ends = new Map<number, bigint>()
  /** Brokers that lead partitions, and how often each was asked since the last record came. */
  #asked = new Map<number, number>()

  constructor(
    readonly topic: string,
    readonly groupId: string,
    readonly read: (record: TopicRecord) => void,
  ) {}

  /**
   * Reads until the client gives up.
   *
   * @param whole - called once all that was there at the beginning has been read.
   * @throws why the client gave up; the reason of the signal.
   */
  async run(kafka: Kafka, whole: () => void, signal: AbortSignal): Promise<never> {
    const consumer = kafka.consumer({
      groupId: `${this.groupId}.${randomUUID().slice(0, 8)}`,
      maxWaitTimeInMs: 250,
      allowAutoTopicCreation: false,
      retry: consumerRetry,
    })
    const crashed = new Promise<Error>((resolve) => {
      consumer.on(consumer.events.CRASH, ({ payload: { error } }) => resolve(error))
    })
    try {
      await unlessAborted(Promise.all([this.#lookAtEnds(kafka), consumer.connect()]), signal)
      await consumer.subscribe({ topic: this.topic, fromBeginning: true })
      this.#tellWhole(consumer, whole)
      await consumer.run({
        autoCommit: false,
        eachBatch: (payload) => {
          const { partition, messages } = payload.batch
          for (const { key, value, offset, headers } of messages) {
            const header = (name: string) => headers?.[name]?.toString()
            const at = BigInt(offset)
            const isNew = at >= (this.#next.get(partition) ?? 0n)
            if (isNew && key !== null)
              this.read({ key: key.toString(), value, partition, offset: at, header })
            payload.resolveOffset(offset)
            if (isNew) this.#next.set(partition, at + 1n)
          }
          return Promise.resolve()
        },
      })
      // After an interruption it goes on where it was: what is read again would bring former values back.
      for (const [partition, next] of this.#next)
        consumer.seek({ topic: this.topic, partition, offset: String(next) })
      throw await unlessAborted(crashed, signal)
    } finally {
      await atMost(
        closeMs,
        consumer.disconnect().catch(() => undefined),
      )
    }
  }

  /** Resolves once a record that was written has been read; `false` where it was not within so long. */
  async hasRead(partition: number, offset: bigint, withinMs: number): Promise<boolean> {
    let look = () => undefined as void
    const seen = new Promise<boolean>((resolve) => {
      look = () => {
        if ((this.#next.get(partition) ?? 0n) > offset) resolve(true)
      }
      this.#waiting.add(look)
      look()
    })
    const done = await atMost(withinMs, seen)
    this.#waiting.delete(look)
    return done ?? false
  }

  #tellWhole(consumer: Consumer, whole: () => void): void {
    let isTold = false
    const look = () => {
      const isAtEnd = [...this.#ends].every(([partition, end]) => (this.#next.get(partition) ?? 0n) >= end)
      // What compaction has taken from the end of a partition never comes.
      const isSilent = [...this.#asked.values()].every((times) => times > emptyRounds)
      if (isTold || !(isAtEnd || isSilent)) return
      isTold = true
      whole()
    }
    consumer.on(consumer.events.FETCH, ({ payload: { nodeId } }) => {
      const broker = Number(nodeId)
      this.#asked.set(broker, (this.#asked.get(broker) ?? 0) + 1)
      look()
    })
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) => {
      // Also of batches that hold nothing for readers, as transactions end with.
      const next = BigInt(lastOffset) + 1n
      if (next > (this.#next.get(partition) ?? 0n)) this.#next.set(partition, next)
      for (const broker of this.#asked.keys()) this.#asked.set(broker, 0)
      for (const each of this.#waiting) each()
      look()
    })
  }

  /** Where partitions with records end, and which brokers lead them. */
  async #lookAtEnds(kafka: Kafka): Promise<void> {
    const admin = kafka.admin()
    await admin.connect()
    try {
      const partitions = await admin.fetchTopicOffsets(this.topic)
      const { topics } = await admin.fetchTopicMetadata({ topics: [this.topic] })
      this.#ends = new Map(
        partitions
          .filter(({ low, high }) => BigInt(high) > BigInt(low))
          .map(({ partition, high }) => [partition, BigInt(high)]),
      )
      this.#asked = new Map(topics.flatMap(({ partitions: all }) => all.map(({ leader }) => [leader, 0])))
    } finally {
      await atMost(
        closeMs,
        admin.disconnect().catch(() => undefined),
      )
    }
  }
}
