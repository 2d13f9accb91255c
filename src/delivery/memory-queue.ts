import type { QueuedRecord, RecordQueue } from './record-queue.js'

/** {@link RecordQueue} in memory, bounded by count and by bytes of values; drops the oldest, because consumers want now. */
export class MemoryQueue implements RecordQueue {
  #records: (QueuedRecord | undefined)[] = []
  #first = 0
  #bytes = 0

  constructor(readonly limits: Readonly<{ maxRecords: number; maxBytes: number }>) {}

  get length(): number {
    return this.#records.length - this.#first
  }

  get oldestAcceptedMs(): number | undefined {
    return this.#records[this.#first]?.acceptedMs
  }

  push(record: QueuedRecord): number {
    this.#records.push(record)
    this.#bytes += record.value.length
    let dropped = 0
    while (this.length > 1 && (this.length > this.limits.maxRecords || this.#bytes > this.limits.maxBytes)) {
      this.#shift()
      dropped += 1
    }
    return dropped
  }

  async lease(maxRecords: number, maxBytes: number): Promise<readonly QueuedRecord[]> {
    const leased: QueuedRecord[] = []
    let bytes = 0
    for (let next = this.#records[this.#first]; next !== undefined; next = this.#records[this.#first]) {
      bytes += next.value.length
      if (leased.length === maxRecords || (leased.length > 0 && bytes > maxBytes)) break
      this.#shift()
      leased.push(next)
    }
    return leased
  }

  /** A leased record is no longer here, so there is nothing to forget. */
  settle(): void {}

  release(leased: readonly QueuedRecord[]): void {
    this.#records = [...leased, ...this.#records.slice(this.#first)]
    this.#first = 0
    this.#bytes += leased.reduce((bytes, { value }) => bytes + value.length, 0)
  }

  #shift(): void {
    this.#bytes -= this.#records[this.#first]?.value.length ?? 0
    this.#records[this.#first] = undefined
    this.#first += 1
    if (this.#first < 1_024 || this.#first * 2 < this.#records.length) return
    this.#records = this.#records.slice(this.#first)
    this.#first = 0
  }
}
