import { type Kafka, logLevel, type Producer } from 'kafkajs'
import type { KafkaConfig } from '../../config/outputs.js'
import { atMost, unlessAborted } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { AnsweringBroker } from './answering-broker.js'
import { useCodec } from './codecs.js'
import { connectionAdvice } from './kafka-advice.js'
import { KafkaClients, loginSecrets } from './kafka-client.js'
import type { RecordLink, RecordLinks } from '../record-link.js'
import { DeadLetters } from './dead-letters.js'
import { kafkaFailure, KafkaUnavailableError, reasonOf, refusesIdempotence } from './kafka-errors.js'
import { kafkaLog } from './kafka-log.js'
import { KafkaLink } from './kafka-producer-link.js'
import { KafkaTopics } from './kafka-topics.js'
import { LeaderWatch } from './leader-watch.js'
import { PartitionLeaders } from './partition-leaders.js'
import { SocketGuard } from './socket-guard.js'

const connectTimeoutMs = 2_000
const openDeadlineMs = 10_000
/** Upper bound only: every send has its own deadline. */
const requestTimeoutMs = 30_000
const connectRetry = { initialRetryTime: 100, maxRetryTime: 500, factor: 0.2, multiplier: 2, retries: 2 }
/** Longer than any deadline: within one producer a repetition is known to the broker as one. */
const sendRetry = { ...connectRetry, retries: 100 }
/** Some 2 s, in which a leader may move. */
const carefulSendRetry = { ...connectRetry, retries: 6 }

/**
 * Opens connections to the brokers with one producer each.
 *
 * A producer is used until its first failed send and never after: kafkajs rolls the sequence numbers of a failed batch back, and
 * another batch sent under the same numbers would be taken for a repetition by the broker and lost. A new producer id may repeat
 * records, with the same `ce_id`, but cannot lose any. Only a refusal leaves it usable: what was refused has used no numbers, and a
 * partition that its leader took beside it is sent again as the very same batch, which the broker then knows as a repetition.
 */
export class KafkaLinks implements RecordLinks {
  readonly failureOf = kafkaFailure
  #idempotent: boolean
  readonly #leaders = new PartitionLeaders()
  readonly #deadLetters: DeadLetters | undefined
  readonly #watch: LeaderWatch
  /** The last attempt to connect failed. */
  #failed = false
  readonly #logCreator: ReturnType<typeof kafkaLog>
  readonly #clients: KafkaClients

  constructor(
    readonly config: KafkaConfig,
    readonly log: Log,
  ) {
    this.#idempotent = config.idempotent
    this.#logCreator = kafkaLog(log, loginSecrets(config.sasl))
    this.#clients = new KafkaClients(config, log)
    this.#watch = new LeaderWatch(this.#clients)
    const { deadLetter } = config.topics
    if (deadLetter !== false) this.#deadLetters = new DeadLetters(deadLetter)
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
      const kafka = await this.#client(guard, await this.#first(careful))
      const topics = new KafkaTopics(kafka, this.config, this.log)
      const producer = await unlessAborted(this.#connect(kafka, topics, careful), signal)
      const { config } = this
      const [watch, leaders, deadLetters] = [this.#watch, this.#leaders, this.#deadLetters]
      this.#failed = false
      return new KafkaLink({ producer, guard, watch, leaders, topics, config, codec, deadLetters })
    } catch (error) {
      guard.close()
      this.#failed = true
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

  /** The broker to connect to first; undefined: as in the settings, as none is in doubt or none answers. */
  async #first(careful: boolean): Promise<string | undefined> {
    const { brokers } = this.config
    if (brokers.length === 1 || (!careful && !this.#failed)) return undefined
    const broker = await AnsweringBroker.find(this.#clients)
    broker?.close()
    return broker?.address
  }

  #client(guard: SocketGuard, first: string | undefined): Promise<Kafka> {
    const { brokers } = this.config
    return this.#clients.create(guard, {
      brokers: first === undefined ? brokers : [first, ...brokers.filter((broker) => broker !== first)],
      connectionTimeout: connectTimeoutMs,
      authenticationTimeout: openDeadlineMs,
      requestTimeout: requestTimeoutMs,
      retry: connectRetry,
      logLevel: logLevel.WARN,
      logCreator: this.#logCreator,
    })
  }

  async #connect(kafka: Kafka, topics: KafkaTopics, careful: boolean): Promise<Producer> {
    const work = (async () => {
      await topics.prepare(this.#leaders)
      const producer = kafka.producer({
        idempotent: this.#idempotent,
        maxInFlightRequests: 1,
        allowAutoTopicCreation: false,
        createPartitioner: this.#leaders.createPartitioner,
        retry: careful ? carefulSendRetry : sendRetry,
      })
      await producer.connect()
      return producer
    })()
    const producer = await atMost(openDeadlineMs, work)
    if (producer !== undefined) return producer
    throw new KafkaUnavailableError(`no connection within ${openDeadlineMs} ms`)
  }
}
