import { delay } from '../../lifecycle/delay.js'
import { AnsweringBroker } from './answering-broker.js'
import type { KafkaClients } from './kafka-client.js'
import { type PartitionLeaders, partitionName } from './partition-leaders.js'

/** A leader that is well answers sooner, and one that tells us that it leads no more does so itself. */
const patienceMs = 2_000
const everyMs = 1_000
/** Nobody leads it, as brokers say that. */
const none = -1

export type TopicPartition = Readonly<{ topic: string; partition: number }>

/**
 * Finds out that a leader which does not answer has lost its partitions: one whose process stands still keeps its connections, so nothing
 * else tells before the deadline of the send.
 */
export class LeaderWatch {
  /** @param known - what records are sent by; it is read anew each time, as the client library learns of a leader that tells it the next one. */
  constructor(
    readonly clients: KafkaClients,
    readonly known: Pick<PartitionLeaders, 'leaderOf'>,
  ) {}

  /** Resolves with the sentence that says which one is led by another broker now; undefined once the signal aborts. Never rejects. */
  async moved(partitions: readonly TopicPartition[], signal: AbortSignal): Promise<string | undefined> {
    let broker: AnsweringBroker | undefined
    try {
      for (let waitMs = patienceMs; await delay(waitMs, signal); waitMs = everyMs) {
        try {
          broker ??= await AnsweringBroker.find(this.clients)
          const now = await broker?.leaders([...new Set(partitions.map(({ topic }) => topic))])
          const sentence = partitions.map((place) => this.#moved(place, now)).find((one) => one !== undefined)
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

  #moved({ topic, partition }: TopicPartition, now: PartitionLeaders | undefined): string | undefined {
    const [before, after] = [this.known, now].map((leaders) => leaders?.leaderOf(topic, partition) ?? none)
    if (before === none || after === none || before === after) return undefined
    return `broker ${before} does not answer, and ${partitionName(topic, partition)} has another leader now`
  }
}
