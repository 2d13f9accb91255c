import type { RecordFilter } from './record-filter.js'
import type { QueuedRecord, RecordQueue } from './record-queue.js'

/**
 * A queue of which a sink gets what its filter lets through. The filter is asked where records are leased, as those that are stored are
 * read again after a restart; what it leaves out is settled there.
 */
export class FilteredQueue implements RecordQueue {
  /** @param leftOut - told of each record that does not go, with why. */
  constructor(
    readonly inner: RecordQueue,
    readonly filter: RecordFilter,
    readonly leftOut: (kind: 'filtered' | 'over_limit', record: QueuedRecord) => void,
  ) {}

  /** With those that will be left out. */
  get length(): number {
    return this.inner.length
  }

  get oldestAcceptedMs(): number | undefined {
    return this.inner.oldestAcceptedMs
  }

  push(record: QueuedRecord): number {
    return this.inner.push(record)
  }

  async lease(maxRecords: number, maxBytes: number): Promise<readonly QueuedRecord[]> {
    for (;;) {
      const leased = await this.inner.lease(maxRecords, maxBytes)
      const kept = leased.flatMap((record) => this.#kept(record) ?? [])
      if (kept.length > 0 || leased.length === 0) return kept
    }
  }

  settle(leased: readonly QueuedRecord[]): void {
    this.inner.settle(leased)
  }

  release(leased: readonly QueuedRecord[]): void {
    this.inner.release(leased)
  }

  close(): Readonly<{ lost: number; kept: number }> {
    return this.inner.close()
  }

  #kept(record: QueuedRecord): QueuedRecord | undefined {
    const verdict = this.filter.judge(record)
    if (verdict.kind === 'send')
      return verdict.value === record.value ? record : { ...record, value: verdict.value }
    this.inner.settle([record])
    this.leftOut(verdict.kind, record)
    return undefined
  }
}
