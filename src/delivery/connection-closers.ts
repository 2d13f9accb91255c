import type { QueuedRecord } from './record-queue.js'

/** Times that a record alone must have its connection closed before others are tried without it. */
const strikesOfOne = 2
/** More suspects than this, and it is everybody's. */
const maxSuspects = 8
/** Sends without trouble after which twice as many records go at once again. */
const sendsToGrow = 100

/**
 * The far side also refuses by closing the connection, such as a Kafka broker does with a request larger than its `socket.request.max.bytes`. Less and less is then
 * sent at once, down to single records; one that closes each connection is suspect, and condemned once the far side takes another of its
 * partition. Until then nothing of its partition is taken, so that order is kept.
 */
export class ConnectionClosers {
  #limit: number
  #strikes = 0
  #sends = 0
  readonly #suspects = new Set<QueuedRecord>()

  constructor(readonly maxRecords: number) {
    this.#limit = maxRecords
  }

  /** What goes next of the records that wait, oldest first. */
  next(waiting: readonly QueuedRecord[]): readonly QueuedRecord[] {
    const others = waiting.filter((record) => !this.#suspects.has(record))
    if (others.length > 0) return others.slice(0, this.#limit)
    this.#suspects.clear()
    return waiting.slice(0, this.#limit)
  }

  /** Records were sent, and the connection was closed by the far side. */
  closed(sent: readonly QueuedRecord[]): void {
    this.#sends = 0
    const [only, ...others] = sent
    if (others.length > 0) this.#limit = Math.ceil(sent.length / 2)
    this.#strikes = others.length > 0 ? 0 : this.#strikes + 1
    if (only === undefined || this.#strikes < strikesOfOne) return
    this.#strikes = 0
    this.#suspects.add(only)
    if (this.#suspects.size > maxSuspects) this.#suspects.clear()
  }

  /** @returns the records that are condemned by the far side's taking these. */
  taken(
    records: readonly QueuedRecord[],
    partitionOf: (record: QueuedRecord) => string,
  ): readonly QueuedRecord[] {
    this.#strikes = 0
    this.#sends += 1
    if (this.#sends % sendsToGrow === 0) this.#limit = Math.min(this.#limit * 2, this.maxRecords)
    if (this.#suspects.size === 0) return []
    const partitions = new Set(records.map(partitionOf))
    const condemned = [...this.#suspects].filter((record) => partitions.has(partitionOf(record)))
    for (const record of condemned) this.#suspects.delete(record)
    return condemned
  }
}
