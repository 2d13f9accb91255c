import {
  type CompressionTypes,
  type Kafka,
  logLevel,
  Partitioners,
  type Admin,
  type ICustomPartitioner,
  type Message,
  type Producer,
} from 'kafkajs'
import type { KafkaConfig } from '../../config/outputs.js'
import { cloudEventHeaders, eventTypes } from '../../messages/cloud-event.js'
import { wallMs } from '../../lifecycle/clock.js'
import { atMost, unlessAborted } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { useCodec } from './codecs.js'
import { connectionAdvice } from './kafka-advice.js'
import { KafkaClients, loginSecrets } from './kafka-client.js'
import {
  kafkaFailure,
  KafkaUnavailableError,
  reasonOf,
  refusesIdempotence,
  TopicAbsentError,
} from './kafka-errors.js'
import { kafkaLog } from './kafka-log.js'
import type { RecordLink, RecordLinks } from '../record-link.js'
import type { OutgoingRecord } from '../record-queue.js'
import { SocketGuard } from './socket-guard.js'

const connectTimeoutMs = 2_000
const openDeadlineMs = 10_000
/** Upper bound only: every send has its own deadline. */
const requestTimeoutMs = 30_000
const connectRetry = { initialRetryTime: 100, maxRetryTime: 500, factor: 0.2, multiplier: 2, retries: 2 }
const sendRetry = { ...connectRetry, retries: 20 }
/** Some 2 s, in which a leader may move. */
const carefulSendRetry = { ...connectRetry, retries: 6 }

/**
 * Opens connections to the brokers with one producer each.
 *
 * A producer is used until its first failed send and never after: kafkajs rolls the sequence numbers of a failed batch back, and
 * another batch sent under the same numbers would be taken for a repetition by the broker and lost. A new producer id may repeat
 * records, with the same `ce_id`, but cannot lose any. Only a refusal leaves it usable: what was refused has used no numbers, and a
 * partition that was taken beside it is sent again as the very same batch, which the broker then knows as a repetition.
 */
export class KafkaLinks implements RecordLinks {
  readonly failureOf = kafkaFailure
  #idempotent: boolean
  readonly #partitions = new PartitionsOfKeys()
  readonly #logCreator: ReturnType<typeof kafkaLog>
  readonly #clients: KafkaClients

  constructor(
    readonly config: KafkaConfig,
    readonly log: Log,
  ) {
    this.#idempotent = config.idempotent
    this.#logCreator = kafkaLog(log, loginSecrets(config.sasl))
    this.#clients = new KafkaClients(config, log)
  }

  /** @throws KafkaUnavailableError */
  async open(signal: AbortSignal, careful: boolean): Promise<RecordLink> {
    try {
      return await this.#open(signal, careful)
    } catch (error) {
      if (!this.#idempotent || !refusesIdempotence(error)) throw error
      this.#idempotent = false
      this.log.warn({ reason: reasonOf(error) }, 'broker gives no producer id, sending without idempotence')
      return this.#open(signal, careful)
    }
  }

  async #open(signal: AbortSignal, careful: boolean): Promise<RecordLink> {
    const guard = new SocketGuard()
    const cut = () => guard.close()
    signal.addEventListener('abort', cut, { once: true })
    try {
      signal.throwIfAborted()
      const codec = await useCodec(this.config.compression)
      const kafka = await this.#client(guard)
      const producer = await unlessAborted(this.#connect(kafka, careful), signal)
      return new KafkaLink(producer, guard, this.#partitions, this.config, codec, () => topicsOf(kafka))
    } catch (error) {
      guard.close()
      this.#clients.forgetLogin()
      throw this.#unavailable(error, guard)
    } finally {
      signal.removeEventListener('abort', cut)
    }
  }

  #unavailable(error: unknown, guard: SocketGuard): KafkaUnavailableError {
    const advice = connectionAdvice(error, guard.failure, this.config)
    if (advice !== undefined) return new KafkaUnavailableError(`${advice.reason}; ${advice.fix}`, error)
    return error instanceof KafkaUnavailableError ? error : new KafkaUnavailableError(reasonOf(error), error)
  }

  #client(guard: SocketGuard): Promise<Kafka> {
    return this.#clients.create(guard, {
      connectionTimeout: connectTimeoutMs,
      authenticationTimeout: openDeadlineMs,
      requestTimeout: requestTimeoutMs,
      retry: connectRetry,
      logLevel: logLevel.WARN,
      logCreator: this.#logCreator,
    })
  }

  async #connect(kafka: Kafka, careful: boolean): Promise<Producer> {
    const work = (async () => {
      if (this.config.createTopics) await this.#createTopics(kafka.admin({ retry: connectRetry }))
      const producer = kafka.producer({
        idempotent: this.#idempotent,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        createPartitioner: this.#partitions.createPartitioner,
        retry: careful ? carefulSendRetry : sendRetry,
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
      const there = new Set(await admin.listTopics())
      const missing = [...new Set(Object.values(this.config.topics))].filter((topic) => !there.has(topic))
      if (missing.length === 0) return
      const configEntries = [
        { name: 'retention.ms', value: String(retentionMs) },
        { name: 'cleanup.policy', value: 'delete' },
        // The time of the broker: it never refuses a record for a clock that differs from its own.
        { name: 'message.timestamp.type', value: 'LogAppendTime' },
      ]
      const created = await admin.createTopics({
        topics: missing.map((topic) => ({
          topic,
          numPartitions: partitions,
          replicationFactor,
          configEntries,
        })),
        timeout: openDeadlineMs,
      })
      if (created) this.log.info({ topics: missing, partitions, retentionMs }, 'topics created')
    } catch (error) {
      this.log.warn({ reason: reasonOf(error) }, 'topic could not be created')
    } finally {
      void admin.disconnect().catch(() => undefined)
    }
  }
}

/** Which partition each key went to. */
class PartitionsOfKeys {
  readonly #partitions = new Map<string, string>()

  readonly createPartitioner: ICustomPartitioner = () => {
    const choose = Partitioners.DefaultPartitioner()
    return (given) => {
      const partition = choose(given)
      this.#partitions.set(`${given.topic} ${String(given.message.key)}`, `${given.topic} ${partition}`)
      return partition
    }
  }

  /** The key itself stands for one that never came as far. */
  of(topic: string, key: string): string {
    const place = `${topic} ${key}`
    return this.#partitions.get(place) ?? place
  }
}

async function topicsOf(kafka: Kafka): Promise<ReadonlySet<string>> {
  const admin = kafka.admin({ retry: connectRetry })
  await admin.connect()
  try {
    return new Set(await admin.listTopics())
  } finally {
    void admin.disconnect().catch(() => undefined)
  }
}

class KafkaLink implements RecordLink {
  #there: Promise<ReadonlySet<string>> | undefined

  constructor(
    readonly producer: Producer,
    readonly guard: SocketGuard,
    readonly partitions: PartitionsOfKeys,
    readonly config: KafkaConfig,
    readonly codec: CompressionTypes,
    readonly topics: () => Promise<ReadonlySet<string>>,
  ) {}

  async send(records: readonly OutgoingRecord[], deadlineMs: number): Promise<void> {
    await this.#checkEvents(records)
    const work = this.producer
      .sendBatch({
        acks: -1,
        timeout: deadlineMs,
        compression: this.codec,
        // The time of this attempt, one for all: what waited long is not refused for its age; when it was captured is `ce_time`.
        topicMessages: [...this.#byTopic(records)].map(([topic, messages]) => ({ topic, messages })),
      })
      .then(() => true)
    const done = await atMost(deadlineMs, work)
    if (done === true) return
    throw new KafkaUnavailableError(`no acknowledgement within ${deadlineMs} ms`)
  }

  partitionOf(record: OutgoingRecord): string {
    return this.partitions.of(this.#topicOf(record), record.cameraId)
  }

  close(): void {
    this.guard.close()
  }

  /** Results do not wait for a topic of events that nobody has made. @throws TopicAbsentError */
  async #checkEvents(records: readonly OutgoingRecord[]): Promise<void> {
    const { events } = this.config.topics
    if (!records.some((record) => this.#topicOf(record) === events)) return
    this.#there ??= this.topics()
    if (!(await this.#there).has(events)) throw new TopicAbsentError(events)
  }

  #byTopic(records: readonly OutgoingRecord[]): Map<string, Message[]> {
    const byTopic = new Map<string, Message[]>()
    const timestamp = String(wallMs())
    for (const record of records) {
      const topic = this.#topicOf(record)
      const messages = byTopic.get(topic) ?? []
      byTopic.set(topic, messages)
      messages.push({ ...kafkaMessage(record), timestamp })
    }
    return byTopic
  }

  #topicOf({ type }: OutgoingRecord): string {
    const { topics } = this.config
    return type === eventTypes.detections ? topics.detections : topics.events
  }
}

function kafkaMessage({ id, type, cameraId, time, value }: OutgoingRecord): Message {
  return { key: cameraId, value, headers: cloudEventHeaders({ id, type, cameraId, time }) }
}
