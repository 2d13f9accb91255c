import type { CompressionTypes, Message, Producer } from 'kafkajs'
import type { KafkaConfig } from '../../config/outputs.js'
import { wallMs } from '../../lifecycle/clock.js'
import { atMost, unlessAborted } from '../../lifecycle/delay.js'
import { cloudEventHeaders, eventTypes } from '../../messages/cloud-event.js'
import type { RecordLink, SetAside } from '../record-link.js'
import type { OutgoingRecord } from '../record-queue.js'
import type { Refusal } from '../refusal.js'
import type { DeadLetters } from './dead-letters.js'
import { kafkaFailure, KafkaUnavailableError, TopicAbsentError } from './kafka-errors.js'
import type { KafkaTopics } from './kafka-topics.js'
import type { LeaderWatch, LedPartition } from './leader-watch.js'
import { type PartitionLeaders, partitionName } from './partition-leaders.js'
import { endedByUs, type SocketGuard } from './socket-guard.js'

/** Dead letters are few, and read by people. */
const deadLetterPartitions = 1

/** For the other leaders to answer, once what one of them led has moved. */
const othersMs = 1_000

export type KafkaLinkParts = Readonly<{
  producer: Pick<Producer, 'sendBatch'>
  guard: SocketGuard
  watch: Pick<LeaderWatch, 'moved'>
  leaders: PartitionLeaders
  topics: KafkaTopics
  config: KafkaConfig
  codec: CompressionTypes
  deadLetters: DeadLetters | undefined
}>

type Told<R> = (records: readonly R[]) => void

/**
 * One producer. Each leader is sent what it leads by a call of its own: within one call kafkajs keeps which brokers have answered, and when
 * it tries again it leaves those out, although they may lead by then what another one had led; it would call that sent. So the answers are
 * held against what was sent, and what a broker has taken stays taken when another one fails.
 */
export class KafkaLink implements RecordLink {
  readonly #closed = new AbortController()
  #events: Promise<boolean> | undefined
  #deadLetter: Promise<boolean> | undefined

  constructor(readonly parts: KafkaLinkParts) {}

  async send<R extends OutgoingRecord>(
    records: readonly R[],
    deadlineMs: number,
    taken: Told<R> = () => undefined,
  ): Promise<void> {
    let isOver = false
    const tell: Told<R> = (some) => {
      if (!isOver) taken(some)
    }
    try {
      await this.#within(deadlineMs, this.#sendAll(records, deadlineMs, tell))
    } finally {
      // What a broker takes later is sent again all the same.
      isOver = true
    }
  }

  partitionOf(record: OutgoingRecord): string {
    const topic = this.#topicOf(record)
    // The key itself stands for one of which nothing is known.
    return partitionName(topic, this.parts.leaders.partitionOf(topic, record.cameraId) ?? record.cameraId)
  }

  async setAside(
    record: OutgoingRecord,
    refusal: Refusal,
    deadlineMs: number,
  ): Promise<SetAside | undefined> {
    const { producer, codec, topics, deadLetters } = this.parts
    const produce = async (topic: string, message: Message) => {
      const messages = [{ ...message, timestamp: String(wallMs()) }]
      const batch = {
        acks: -1,
        timeout: deadlineMs,
        compression: codec,
        topicMessages: [{ topic, messages }],
      }
      await this.#within(deadlineMs, producer.sendBatch(batch))
    }
    const ensure = (topic: string) => {
      this.#deadLetter ??= topics.ensure(topic, deadLetterPartitions)
      return this.#within(deadlineMs, this.#deadLetter)
    }
    return deadLetters?.put({ produce, ensure }, record, this.#topicOf(record), refusal)
  }

  trouble(): string | undefined {
    return this.parts.guard.failure?.message
  }

  close(): void {
    this.parts.guard.close()
    this.#closed.abort(new KafkaUnavailableError(endedByUs))
  }

  /** All of them, until a leader fails, refuses some, or answers for none of what it was sent. */
  async #sendAll<R extends OutgoingRecord>(
    records: readonly R[],
    deadlineMs: number,
    taken: Told<R>,
  ): Promise<void> {
    await this.#checkEvents(records)
    let left = records
    while (left.length > 0) {
      const { failures } = this.parts.guard
      const sending = this.#byLeader(left).map((group) => this.#sendGroup(group, deadlineMs, taken))
      const sent = await settledUnlessStill(sending, () => this.parts.guard.failures === failures)
      const errors = sent.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
      if (errors.length > 0) throw errors.find(endsConnection) ?? errors[0]
      const acknowledged = new Set(sent.flatMap((one) => (one.status === 'fulfilled' ? one.value : [])))
      const before = left.length
      left = left.filter((record) => !acknowledged.has(record))
      if (left.length === before)
        throw new KafkaUnavailableError(`no broker answers for ${this.partitionOf(left[0] as R)}`)
    }
  }

  /** Records with the same leader, in their order; those of which none is known are together. */
  #byLeader<R extends OutgoingRecord>(records: readonly R[]): readonly (readonly R[])[] {
    const { leaders } = this.parts
    const groups = new Map<number | undefined, R[]>()
    for (const record of records) {
      const topic = this.#topicOf(record)
      const leader = leaders.leaderOf(topic, leaders.partitionOf(topic, record.cameraId))
      const group = groups.get(leader) ?? []
      groups.set(leader, group)
      group.push(record)
    }
    return [...groups.values()]
  }

  /** @returns those that were acknowledged. */
  async #sendGroup<R extends OutgoingRecord>(
    records: readonly R[],
    deadlineMs: number,
    taken: Told<R>,
  ): Promise<readonly R[]> {
    const { producer, codec, leaders } = this.parts
    const sent = records.map((record) => {
      const topic = this.#topicOf(record)
      return { record, topic, partition: leaders.partitionOf(topic, record.cameraId) }
    })
    const batch = { acks: -1, timeout: deadlineMs, compression: codec, topicMessages: byTopic(sent) }
    const answers = await this.#unlessMoved(sent, producer.sendBatch(batch))
    const acked = new Set(
      answers.flatMap(({ topicName, partition, errorCode }) =>
        errorCode === 0 ? [partitionName(topicName, partition)] : [],
      ),
    )
    const acknowledged = sent.flatMap(({ record, topic, partition }) => {
      const place = partition === undefined ? this.partitionOf(record) : partitionName(topic, partition)
      return acked.has(place) ? [record] : []
    })
    if (acknowledged.length > 0) taken(acknowledged)
    return acknowledged
  }

  /** @throws LeaderMovedError */
  async #unlessMoved<T>(sent: readonly Sent[], work: Promise<T>): Promise<T> {
    const settled = new AbortController()
    const end = () => settled.abort()
    this.#closed.signal.addEventListener('abort', end, { once: true })
    const moved = this.parts.watch.moved(this.#led(sent), settled.signal).then((sentence) => {
      if (sentence !== undefined) throw new LeaderMovedError(sentence)
      return work
    })
    try {
      return await Promise.race([work, moved])
    } finally {
      end()
      this.#closed.signal.removeEventListener('abort', end)
    }
  }

  #led(sent: readonly Sent[]): readonly LedPartition[] {
    const places = new Map<string, LedPartition>()
    for (const { topic, partition } of sent) {
      const leader = this.parts.leaders.leaderOf(topic, partition)
      if (partition === undefined || leader === undefined) continue
      places.set(partitionName(topic, partition), { topic, partition, leader })
    }
    return [...places.values()]
  }

  /** @throws KafkaUnavailableError when it takes longer, and when the link is closed */
  async #within<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
    const done = work.then((value) => ({ value }))
    const result = await atMost(deadlineMs, unlessAborted(done, this.#closed.signal))
    if (result !== undefined) return result.value
    const trouble = this.trouble()
    const why = trouble === undefined ? '' : ` (${trouble})`
    throw new KafkaUnavailableError(`no acknowledgement within ${deadlineMs} ms${why}`)
  }

  /** Results do not wait for a topic of events that nobody has made. @throws TopicAbsentError */
  async #checkEvents(records: readonly OutgoingRecord[]): Promise<void> {
    const { topics, config } = this.parts
    const { events } = config.topics
    if (!records.some((record) => this.#topicOf(record) === events)) return
    this.#events ??= topics.has(events)
    if (!(await this.#events)) throw new TopicAbsentError(events)
  }

  #topicOf({ type }: OutgoingRecord): string {
    const { topics } = this.parts.config
    return type === eventTypes.detections ? topics.detections : topics.events
  }
}

type Sent = Readonly<{ record: OutgoingRecord; topic: string; partition: number | undefined }>

function byTopic(sent: readonly Sent[]): { topic: string; messages: Message[] }[] {
  const messagesOf = new Map<string, Message[]>()
  // The time of this attempt, one for all: what waited long is not refused for its age; when it was captured is `ce_time`.
  const timestamp = String(wallMs())
  for (const { record, topic, partition } of sent) {
    const { cameraId, value } = record
    const messages = messagesOf.get(topic) ?? []
    messagesOf.set(topic, messages)
    const headers = cloudEventHeaders(record)
    messages.push({ key: cameraId, value, headers, timestamp, ...(partition !== undefined && { partition }) })
  }
  return [...messagesOf].map(([topic, messages]) => ({ topic, messages }))
}

/** What was refused is a word on the records, and the connection is as good as before. */
function endsConnection(error: unknown): boolean {
  return kafkaFailure(error).refusal === undefined
}

/** A leader does not answer, and another one leads what it was sent. */
class LeaderMovedError extends KafkaUnavailableError {}

/**
 * Others that wait for copies on a broker that has failed acknowledge as soon as it counts for dead, which is when what it led has moved.
 * Where that one stands still, who has not by then may have asked it who leads now, as the client library asks any that is connected, and has
 * its answer in half a minute.
 *
 * @param standsStill - no connection has failed since these were sent, as those to a broker that has ended do.
 * @throws LeaderMovedError, a little after the move: what others have taken until then is not sent again
 */
async function settledUnlessStill<T>(
  sending: readonly Promise<T>[],
  standsStill: () => boolean,
): Promise<PromiseSettledResult<T>[]> {
  const settled = Promise.allSettled(sending)
  const moved = new Promise<LeaderMovedError>((resolve) => {
    for (const one of sending)
      one.catch((error: unknown) => {
        if (error instanceof LeaderMovedError) resolve(error)
      })
  })
  const first = await Promise.race([settled, moved])
  if (!(first instanceof LeaderMovedError)) return first
  if (!standsStill()) return settled
  await atMost(othersMs, settled)
  throw first
}
