import { Partitioners, type ICustomPartitioner, type PartitionMetadata } from 'kafkajs'

/** A partition of a topic, as a word: `gantry.detections.v1 3`. */
export function partitionName(topic: string, partition: number | string): string {
  return `${topic} ${partition}`
}

/** Which partition each key goes to, and which broker leads it, by what was heard last. It outlasts connections. */
export class PartitionLeaders {
  readonly #topics = new Map<string, readonly PartitionMetadata[]>()
  readonly #choose = Partitioners.DefaultPartitioner()

  /** For the client library, which asks with what it has just heard of the topic. */
  readonly createPartitioner: ICustomPartitioner = () => (given) => {
    this.learn(given.topic, given.partitionMetadata)
    return this.#choose(given)
  }

  learn(topic: string, partitions: readonly PartitionMetadata[]): void {
    if (partitions.length > 0) this.#topics.set(topic, partitions)
  }

  /** Undefined of a topic that nothing is known of yet. */
  partitionOf(topic: string, key: string): number | undefined {
    const known = this.#topics.get(topic)
    if (known === undefined) return undefined
    return this.#choose({ topic, partitionMetadata: [...known], message: { key, value: null } })
  }

  /** Number of the broker; undefined where it is not known. */
  leaderOf(topic: string, partition: number | undefined): number | undefined {
    return this.#topics.get(topic)?.find(({ partitionId }) => partitionId === partition)?.leader
  }
}
