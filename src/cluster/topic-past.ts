import { randomUUID } from 'node:crypto'
import { type Consumer, type EachBatchPayload, type Kafka, logLevel } from 'kafkajs'
import type { KafkaConfig } from '../config/outputs.js'
import { useCodec } from '../delivery/kafka/codecs.js'
import { KafkaClients } from '../delivery/kafka/kafka-client.js'
import { reasonOf } from '../delivery/kafka/kafka-errors.js'
import { SocketGuard } from '../delivery/kafka/socket-guard.js'
import type { PastResult, SharedPast } from '../delivery/websocket/shared-replay.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { atMost, delay, unlessAborted } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import { eventTypes } from '../messages/cloud-event.js'

/** Clocks of nodes, and of who sent a record and of who read its time. */
const marginMs = 5_000
/** From its publishing until a result is in the topic, where nothing is wrong. */
const deliveredWithinMs = 2_000
/** Without a record or an answer for so long it is given up. */
const silentForMs = 20_000
/** A reader that takes nothing for so long keeps the others waiting no longer. */
const slowForMs = 10_000
const attempts = 3
const retry = { baseMs: 500, capMs: 2_000 }
const lookEveryMs = 100
const closeMs = 3_000
const connectTimeoutMs = 2_000

type Reader = {
  readonly fromMs: number
  readonly offer: (result: PastResult) => Promise<void>
  readonly isLive: Promise<void>
  readonly signal: AbortSignal
  readonly done: (isWhole: boolean) => void
  isSlow: boolean
}

/**
 * The topic of results, which all nodes of a cluster write: the past of their streams. Those who come back at one time, as viewers of a node that
 * has ended, are served by one reading.
 */
export class TopicPast implements SharedPast {
  readonly #clients: KafkaClients
  #waiting: Reader[] = []
  #isReading = false

  /** @param groupId - groups that begin so may be used. */
  constructor(
    readonly config: KafkaConfig,
    readonly groupId: string,
    readonly log: Log,
  ) {
    this.#clients = new KafkaClients(config, log)
  }

  read(
    fromMs: number,
    offer: (result: PastResult) => Promise<void>,
    isLive: Promise<void>,
    signal: AbortSignal,
  ): Promise<boolean> {
    return new Promise((done) => {
      this.#waiting.push({ fromMs, offer, isLive, signal, done, isSlow: false })
      if (!this.#isReading) void this.#readAll()
    })
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    // Those who come in one turn are together.
    await delay(0, new AbortController().signal)
    while (this.#waiting.length > 0) {
      const readers = this.#waiting
      this.#waiting = []
      const isWhole = await this.#readFor(readers)
      for (const { done, isSlow } of readers) done(isWhole && !isSlow)
    }
    this.#isReading = false
  }

  async #readFor(readers: readonly Reader[]): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      const reading = await this.#tryFor(readers)
      // Brokers that begin with a group say no at first; what was offered is not offered again.
      if (reading !== 'failed' || attempt === attempts) return reading === 'whole'
      await delay(backoffMs(attempt, retry), new AbortController().signal)
    }
  }

  /** @returns `failed`: before anything was offered. */
  async #tryFor(readers: readonly Reader[]): Promise<'whole' | 'part' | 'failed'> {
    let reading: TopicReading | undefined
    const guard = new SocketGuard()
    try {
      await useCodec(this.config.compression)
      const kafka = await this.#clients.create(guard, {
        connectionTimeout: connectTimeoutMs,
        requestTimeout: silentForMs,
        retry: { retries: 3 },
        logLevel: logLevel.NOTHING,
      })
      reading = new TopicReading(kafka, this.config.topics.detections, this.groupId, readers)
      return (await reading.run()) ? 'whole' : 'part'
    } catch (error) {
      this.log.warn({ reason: reasonOf(error) }, 'the past of the stream cannot be read from its topic')
      return reading?.hasOffered ? 'part' : 'failed'
    } finally {
      guard.close()
    }
  }
}

class TopicReading {
  /** By partition: where reading goes on, where it ends, and the time of the last record. */
  readonly #next = new Map<number, bigint>()
  #ends: ReadonlyMap<number, bigint> | undefined
  readonly #times = new Map<number, number>()
  #heardMs = nowMs()
  hasOffered = false

  constructor(
    readonly kafka: Kafka,
    readonly topic: string,
    readonly groupId: string,
    readonly readers: readonly Reader[],
  ) {}

  /** @returns whether it came to the end. @throws what the client library throws */
  async run(): Promise<boolean> {
    const { kafka, topic } = this
    const admin = kafka.admin()
    const consumer = kafka.consumer({
      groupId: `${this.groupId}.${randomUUID().slice(0, 8)}`,
      maxWaitTimeInMs: 250,
      allowAutoTopicCreation: false,
      retry: { retries: 3, restartOnFailure: () => Promise.resolve(false) },
    })
    const failed = new AbortController()
    consumer.on(consumer.events.CRASH, ({ payload: { error } }) => failed.abort(error))
    try {
      await Promise.all([admin.connect(), consumer.connect()])
      const fromMs = Math.min(...this.readers.map((reader) => reader.fromMs)) - marginMs
      const begins = await admin.fetchTopicOffsetsByTimestamp(topic, fromMs)
      for (const { partition, offset } of begins) {
        this.#next.set(partition, BigInt(offset))
        this.#times.set(partition, fromMs)
      }
      await this.#consume(consumer, failed.signal)
      await Promise.all(this.readers.map(({ isLive }) => isLive))
      await delay(deliveredWithinMs, failed.signal)
      const ends = await admin.fetchTopicOffsets(topic)
      this.#heardMs = nowMs()
      this.#ends = new Map(ends.map(({ partition, high }) => [partition, BigInt(high)]))
      while (!this.#isAtEnd && !this.#isLeft) {
        failed.signal.throwIfAborted()
        if (nowMs() - this.#heardMs > silentForMs) return false
        await delay(lookEveryMs, failed.signal)
      }
      return this.#isAtEnd
    } finally {
      await atMost(closeMs, Promise.allSettled([consumer.disconnect(), admin.disconnect()]))
    }
  }

  async #consume(consumer: Consumer, failed: AbortSignal): Promise<void> {
    const joined = new Promise<void>((resolve) => consumer.on(consumer.events.GROUP_JOIN, () => resolve()))
    await consumer.subscribe({ topic: this.topic, fromBeginning: true })
    await consumer.run({ autoCommit: false, eachBatch: (payload) => this.#batch(payload) })
    await atMost(silentForMs, unlessAborted(joined, failed))
    for (const [partition, offset] of this.#next)
      consumer.seek({ topic: this.topic, partition, offset: String(offset) })
  }

  async #batch(payload: EachBatchPayload): Promise<void> {
    const { batch } = payload
    const { partition, messages } = batch
    for (const { value, offset, headers, timestamp, key } of messages) {
      const at = BigInt(offset)
      if (at < (this.#next.get(partition) ?? 0n)) continue
      this.#next.set(partition, at + 1n)
      this.#times.set(partition, Number(timestamp))
      this.#heardMs = nowMs()
      payload.resolveOffset(offset)
      if (value === null || key === null || headers?.['ce_type']?.toString() !== eventTypes.detections)
        continue
      await this.#offer(
        { cameraId: key.toString(), json: value, completeMs: this.#completeMs },
        Number(timestamp),
      )
      await payload.heartbeat()
    }
    const last = BigInt(batch.lastOffset()) + 1n
    if (last > (this.#next.get(partition) ?? 0n)) this.#next.set(partition, last)
  }

  async #offer(result: PastResult, timeMs: number): Promise<void> {
    this.hasOffered = true
    for (const reader of this.readers) {
      if (reader.isSlow || reader.signal.aborted || timeMs < reader.fromMs - marginMs) continue
      const taken = await atMost(
        slowForMs,
        reader.offer(result).then(() => true),
      )
      reader.isSlow = taken === undefined
    }
  }

  /** Records come in the order of their partitions, which are not equally far. */
  get #completeMs(): number {
    const behind = [...this.#times]
      .filter(([partition]) => !this.#isDone(partition))
      .map(([, timeMs]) => timeMs)
    return Math.min(wallMs(), ...behind)
  }

  #isDone(partition: number): boolean {
    const end = this.#ends?.get(partition)
    return end !== undefined && (this.#next.get(partition) ?? 0n) >= end
  }

  get #isAtEnd(): boolean {
    return this.#ends !== undefined && [...this.#ends.keys()].every((partition) => this.#isDone(partition))
  }

  /** Nobody reads any more. */
  get #isLeft(): boolean {
    return this.readers.every(({ signal, isSlow }) => signal.aborted || isSlow)
  }
}
