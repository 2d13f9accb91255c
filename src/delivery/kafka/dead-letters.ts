import type { Message } from 'kafkajs'
import { nowMs } from '../../lifecycle/clock.js'
import { cloudEventHeaders } from '../../messages/cloud-event.js'
import type { SetAside } from '../record-link.js'
import type { OutgoingRecord } from '../record-queue.js'
import type { Refusal } from '../refusal.js'
import { protocolTypes, reasonOf } from './kafka-errors.js'

/** Of a value that is too large for the topic of dead letters, too. */
const beginningBytes = 16 * 1024
const detailChars = 500
/** Connections over which one record is tried. */
const maxTries = 3
/** A topic that is not there is looked for again after so long. */
const absentMs = 60_000

const tooLarge = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'CONNECTION_CLOSED']

/** What another try changes nothing of. */
const final = new Set([
  ...tooLarge,
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'CORRUPT_MESSAGE',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'INVALID_TOPIC_EXCEPTION',
  'UNKNOWN_TOPIC_OR_PARTITION',
  'POLICY_VIOLATION',
])

/** What dead letters need of a connection. */
export type DeadLetterPost = Readonly<{
  /** Whether the topic is there, after it was created where that is wanted. */
  ensure: (topic: string) => Promise<boolean>
  /** @throws what the client library throws */
  produce: (topic: string, message: Message) => Promise<void>
}>

/**
 * Puts records that are refused for good into a topic of their own, with the reason, so that somebody can look at them. It never stands in
 * the way of the others: what cannot be put there is left out after a few tries.
 */
export class DeadLetters {
  #trying = { id: '', times: 0 }
  #absentSinceMs = Number.NEGATIVE_INFINITY

  constructor(readonly topic: string) {}

  /**
   * @param from - the topic that it was for.
   * @throws where another connection may do it
   */
  async put(post: DeadLetterPost, record: OutgoingRecord, from: string, refusal: Refusal): Promise<SetAside> {
    const place = this.topic
    const absent = {
      place,
      failure: `there is no topic ${place}: create it, or set sinks.kafka.topics.deadLetter`,
    }
    if (nowMs() - this.#absentSinceMs < absentMs) return absent
    const times = this.#trying.id === record.id ? this.#trying.times + 1 : 1
    this.#trying = { id: record.id, times }
    try {
      if (!(await post.ensure(place))) {
        this.#absentSinceMs = nowMs()
        return absent
      }
      await this.#produce(post, record, from, refusal)
      return { place }
    } catch (error) {
      if (times < maxTries && !isFinal(error)) throw error
      return { place, failure: reasonOf(error) }
    }
  }

  async #produce(
    { produce }: DeadLetterPost,
    record: OutgoingRecord,
    from: string,
    refusal: Refusal,
  ): Promise<void> {
    // Over which connections were closed, the whole would close this one.
    if (refusal.reason === 'CONNECTION_CLOSED')
      return produce(this.topic, deadLetter(record, from, refusal, true))
    try {
      await produce(this.topic, deadLetter(record, from, refusal, false))
    } catch (error) {
      if (!protocolTypes(error).some((type) => tooLarge.includes(type))) throw error
      await produce(this.topic, deadLetter(record, from, refusal, true))
    }
  }
}

function isFinal(error: unknown): boolean {
  return protocolTypes(error).some((type) => final.has(type))
}

/** @param isCut - only the beginning of the value, which is no JSON then. */
function deadLetter(
  record: OutgoingRecord,
  from: string,
  { reason, detail }: Refusal,
  isCut: boolean,
): Message {
  const { cameraId, value } = record
  const isShorter = isCut && value.length > beginningBytes
  return {
    key: cameraId,
    value: isShorter ? value.subarray(0, beginningBytes) : value,
    headers: {
      ...cloudEventHeaders(record),
      gantry_error: reason,
      gantry_error_detail: detail.slice(0, detailChars),
      gantry_original_topic: from,
      gantry_value_bytes: String(value.length),
      ...(isShorter && { gantry_truncated: 'true', 'content-type': 'application/octet-stream' }),
    },
  }
}
