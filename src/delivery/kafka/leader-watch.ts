import { delay } from '../../lifecycle/delay.js'
import { AnsweringBroker } from './answering-broker.js'
import type { KafkaClients } from './kafka-client.js'
import { type PartitionLeaders, partitionName } from './partition-leaders.js'

/** A leader that is well answers sooner, and one that tells us that it leads no more does so itself. */
const patienceMs = 2_000
const everyMs = 1_000
/** Nobody leads it, as brokers say that. */
const none = -1

/** A partition and who led it when records were sent there. */
export type LedPartition = Readonly<{ topic: string; partition: number; leader: number }>

/**
 * Finds out that a leader which does not answer has lost its partitions: one whose process stands still keeps its connections, so nothing
 * else tells before the deadline of the send.
 */
export class LeaderWatch {
  constructor(readonly clients: KafkaClients) {}

  /** Resolves with the sentence that says which one is led by another broker now; undefined once the signal aborts. Never rejects. */
  async moved(partitions: readonly LedPartition[], signal: AbortSignal): Promise<string | undefined> {
    let broker: AnsweringBroker | undefined
    try {
      for (let waitMs = patienceMs; await delay(waitMs, signal); waitMs = everyMs) {
        try {
          broker ??= await AnsweringBroker.find(this.clients)
          const now = await broker?.leaders([...new Set(partitions.map(({ topic }) => topic))])
          const sentence = partitions.map((led) => sentenceOf(led, now)).find((one) => one !== undefined)
          if (sentence !== undefined) return sentence
        } catch {
          // It is asked again, and perhaps another one.
          broker?.close()
          broker = undefined
        }
      }
      return undefined
    } finally {
      broker?.close()
    }
  }
}

/** Another sends there by now where the client library has heard of the move itself: then this is one attempt more. */
function sentenceOf(
  { topic, partition, leader }: LedPartition,
  now: PartitionLeaders | undefined,
): string | undefined {
  const next = now?.leaderOf(topic, partition) ?? none
  if (next === none || next === leader) return undefined
  return `no acknowledgement of broker ${leader}, and ${partitionName(topic, partition)} has another leader now`
}
