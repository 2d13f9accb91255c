import {
  CompressionTypes,
  Kafka,
  logLevel,
  Partitioners,
  type Admin,
  type Message,
  type Producer,
  type SASLOptions,
} from 'kafkajs'
import type { KafkaConfig } from '../../config/outputs.js'
import { cloudEventHeaders, eventTypes } from '../../events/cloud-event.js'
import { atMost, unlessAborted } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { KafkaUnavailableError, reasonOf, refusesIdempotence } from './kafka-errors.js'
import { kafkaLog } from './kafka-log.js'
import type { RecordLink } from './record-link.js'
import type { QueuedRecord } from './record-queue.js'
import { SocketGuard } from './socket-guard.js'

const connectTimeoutMs = 2_000
const openDeadlineMs = 10_000
/** Upper bound only: every send has its own deadline. */
const requestTimeoutMs = 30_000
const connectRetry = { initialRetryTime: 100, maxRetryTime: 500, factor: 0.2, multiplier: 2, retries: 2 }
const sendRetry = { ...connectRetry, retries: 20 }

/**
 * Opens connections to the brokers with one producer each.
 *
 * A producer is used until its first failed send and never after: kafkajs rolls the sequence numbers of a failed batch back, and
 * another batch sent under the same numbers would be taken for a repetition by the broker and lost. A new producer id may repeat
 * records, with the same `ce_id`, but cannot lose any.
 */
export class KafkaLinks {
  #idempotent: boolean
  readonly #logCreator: ReturnType<typeof kafkaLog>

  constructor(
    readonly config: KafkaConfig,
    readonly log: Log,
  ) {
    this.#idempotent = config.idempotent
    this.#logCreator = kafkaLog(log, config.sasl?.password)
  }

  /** @throws KafkaUnavailableError */
  readonly open = async (signal: AbortSignal): Promise<RecordLink> => {
    try {
      return await this.#open(signal)
    } catch (error) {
      if (!this.#idempotent || !refusesIdempotence(error)) throw error
      this.#idempotent = false
      this.log.warn({ reason: reasonOf(error) }, 'broker gives no producer id, sending without idempotence')
      return this.#open(signal)
    }
  }

  async #open(signal: AbortSignal): Promise<RecordLink> {
    const guard = new SocketGuard()
    const cut = () => guard.close()
    signal.addEventListener('abort', cut, { once: true })
    try {
      signal.throwIfAborted()
      const producer = await unlessAborted(this.#connect(this.#client(guard)), signal)
      return new KafkaLink(producer, guard, this.config)
    } catch (error) {
      guard.close()
      throw error instanceof KafkaUnavailableError ? error : new KafkaUnavailableError(reasonOf(error), error)
    } finally {
      signal.removeEventListener('abort', cut)
    }
  }

  #client(guard: SocketGuard): Kafka {
    const { brokers, clientId, ssl, sasl } = this.config
    return new Kafka({
      brokers: [...brokers],
      clientId,
      ssl,
      ...(sasl === undefined ? {} : { sasl: sasl as SASLOptions }),
      connectionTimeout: connectTimeoutMs,
      authenticationTimeout: openDeadlineMs,
      requestTimeout: requestTimeoutMs,
      retry: connectRetry,
      socketFactory: guard.factory,
      logLevel: logLevel.WARN,
      logCreator: this.#logCreator,
    })
  }

  async #connect(kafka: Kafka): Promise<Producer> {
    const work = (async () => {
      if (this.config.createTopics) await this.#createTopics(kafka.admin({ retry: connectRetry }))
      const producer = kafka.producer({
        idempotent: this.#idempotent,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        createPartitioner: Partitioners.DefaultPartitioner,
        retry: sendRetry,
      })
      await producer.connect()
      return producer
    })()
    const producer = await atMost(openDeadlineMs, work)
    if (producer !== undefined) return producer
    throw new KafkaUnavailableError(`no connection within ${openDeadlineMs} ms`)
  }

  /** Not being allowed to create topics is no reason not to send: they may be there. */
  async #createTopics(admin: Admin): Promise<void> {
    await admin.connect()
    try {
      const { partitions, replicationFactor, retentionMs } = this.config
      const topic = this.config.topics.detections
      if ((await admin.listTopics()).includes(topic)) return
      const configEntries = [
        { name: 'retention.ms', value: String(retentionMs) },
        { name: 'cleanup.policy', value: 'delete' },
      ]
      const created = await admin.createTopics({
        topics: [{ topic, numPartitions: partitions, replicationFactor, configEntries }],
        timeout: openDeadlineMs,
      })
      if (created) this.log.info({ topic, partitions, retentionMs }, 'topic created')
    } catch (error) {
      this.log.warn({ reason: reasonOf(error) }, 'topic could not be created')
    } finally {
      void admin.disconnect().catch(() => undefined)
    }
  }
}

class KafkaLink implements RecordLink {
  constructor(
    readonly producer: Producer,
    readonly guard: SocketGuard,
    readonly config: KafkaConfig,
  ) {}

  async send(records: readonly QueuedRecord[], deadlineMs: number): Promise<void> {
    const work = this.producer
      .sendBatch({
        acks: -1,
        timeout: deadlineMs,
        compression: this.config.compression === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None,
        topicMessages: [...this.#byTopic(records)].map(([topic, messages]) => ({ topic, messages })),
      })
      .then(() => true)
    const done = await atMost(deadlineMs, work)
    if (done === true) return
    throw new KafkaUnavailableError(`no acknowledgement within ${deadlineMs} ms`)
  }

  close(): void {
    this.guard.close()
  }

  #byTopic(records: readonly QueuedRecord[]): Map<string, Message[]> {
    const { topics } = this.config
    const byTopic = new Map<string, Message[]>()
    for (const record of records) {
      const topic = record.type === eventTypes.events ? topics.events : topics.detections
      const messages = byTopic.get(topic) ?? []
      byTopic.set(topic, messages)
      messages.push(kafkaMessage(record))
    }
    return byTopic
  }
}

function kafkaMessage({ id, type, cameraId, time, value }: QueuedRecord): Message {
  return {
    key: cameraId,
    value,
    headers: cloudEventHeaders({ id, type, cameraId, time }),
    timestamp: String(Date.parse(time)),
  }
}
