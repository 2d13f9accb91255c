import { nowMs } from '../lifecycle/clock.js'
import type { Log } from '../lifecycle/log.js'
import type { ServiceMetrics } from '../metrics/service-metrics.js'
import { Delivery, type DeliverySettings } from './delivery.js'
import { FilteredQueue } from './filtered-queue.js'
import type { RecordFilter } from './record-filter.js'
import type { RecordLinks, SetAside } from './record-link.js'
import type { QueuedRecord, RecordQueue } from './record-queue.js'
import type { Refusal } from './refusal.js'
import type { ResultSink, SinkHealth } from './result-sink.js'

/** While the far side stays away, say so again this often. */
const remindMs = 60_000

/** Records rejected for one reason, how many of them the log knows, and since when. */
type Rejections = { records: number; told: number; toldMs: number }

export type DeliverySinkMetrics = Pick<
  ServiceMetrics,
  'sinkRecords' | 'sinkRejected' | 'sinkDeadLetters' | 'sinkQueued' | 'sinkUp' | 'publish'
>

/** What one sink differs in from the others. */
export type DeliverySinkParts = Readonly<{
  /** Of the sink in metrics, log and health. */
  name: string
  /** Between acceptance and delivery; this sink's alone. */
  queue: RecordQueue
  links: RecordLinks
  settings: DeliverySettings
  filter: RecordFilter
  /** Sentences of the log. */
  words: Readonly<{ up: string; down: string; refused: string }>
}>

/**
 * Results as CloudEvents records, each with its camera for a key. Accepting costs a push onto a queue; everything else happens behind it, so
 * a far side that is down, slow or gone delays nothing. At least once: records can repeat with the same id, also over a restart.
 */
export class DeliverySink implements ResultSink {
  onSettled: ResultSink['onSettled']
  readonly #queue: RecordQueue
  readonly #delivery: Delivery
  #state: SinkHealth['state'] = 'connecting'
  #reason = 'not started'
  #delivered = 0
  #dropped = 0
  #filtered = 0
  readonly #rejected = new Map<string, Rejections>()
  #remindedMs = Number.NEGATIVE_INFINITY
  #stopping: Promise<void> | undefined

  constructor(
    readonly parts: DeliverySinkParts,
    readonly metrics: DeliverySinkMetrics,
    readonly log: Log,
  ) {
    this.#queue = new FilteredQueue(parts.queue, parts.filter, (kind, record) => this.#leaveOut(kind, record))
    this.#delivery = new Delivery(this.#queue, parts.links, parts.settings, {
      up: () => this.#up(),
      down: (reason, attempt) => this.#down(reason, attempt),
      delivered: (records) => this.#count(records),
      rejected: (record, refusal, aside) => this.#reject(record, refusal, aside),
    })
  }

  get name(): string {
    return this.parts.name
  }

  get health(): SinkHealth {
    return {
      name: this.name,
      state: this.#state,
      reason: this.#reason,
      queued: this.#queue.length + this.#delivery.inFlight,
      delivered: this.#delivered,
      dropped: this.#dropped,
      filtered: this.#filtered,
      rejected: Object.fromEntries([...this.#rejected].map(([reason, { records }]) => [reason, records])),
    }
  }

  start(): void {
    this.#reason = 'connecting'
    this.metrics.sinkUp.set({ sink: this.name }, 0)
    this.#delivery.start()
  }

  accept(record: QueuedRecord): void {
    if (record.sink !== undefined && record.sink !== this.name) return
    // One that is stored is left out where it is leased, and settled there.
    if (!record.isStored && this.parts.filter.isUnwanted(record)) {
      this.#leaveOut('filtered', record)
      return
    }
    if (this.#stopping !== undefined) {
      // The next run delivers what is stored.
      if (!record.isStored) this.#drop(1)
      this.onSettled?.(record, 'dropped')
      return
    }
    const dropped = this.#queue.push(record)
    if (dropped > 0) this.#drop(dropped)
    this.#delivery.notify()
    this.#showQueue()
  }

  stop(drainMs: number): Promise<void> {
    this.#stopping ??= this.#stop(drainMs)
    return this.#stopping
  }

  async #stop(drainMs: number): Promise<void> {
    const { queued } = this.health
    if (queued > 0)
      this.log.info({ sink: this.name, records: queued, drainMs }, 'delivering what is queued before the end')
    await this.#delivery.stop(drainMs)
    const { lost, kept } = this.#queue.close()
    if (lost > 0) {
      this.#drop(lost)
      this.log.warn({ sink: this.name, records: lost }, 'records not delivered before the end')
    }
    if (kept > 0)
      this.log.info({ sink: this.name, records: kept }, 'records that the next start delivers are stored')
    this.#state = 'stopped'
    this.#reason = 'stopped'
    this.metrics.sinkUp.set({ sink: this.name }, 0)
    this.#showQueue()
  }

  #up(): void {
    if (this.#state !== 'up')
      this.log.info({ sink: this.name, queued: this.#queue.length }, this.parts.words.up)
    this.#state = 'up'
    this.#reason = 'connected'
    this.#remindedMs = Number.NEGATIVE_INFINITY
    this.metrics.sinkUp.set({ sink: this.name }, 1)
  }

  #down(reason: string, attempt: number): void {
    this.#state = 'down'
    this.#reason = reason
    this.metrics.sinkUp.set({ sink: this.name }, 0)
    const atMs = nowMs()
    if (atMs - this.#remindedMs < remindMs) return
    this.#remindedMs = atMs
    this.log.warn({ sink: this.name, reason, attempt, queued: this.#queue.length }, this.parts.words.down)
  }

  #count(records: readonly QueuedRecord[]): void {
    const atMs = nowMs()
    for (const record of records) {
      const { acceptedMs, cameraId: camera } = record
      this.metrics.publish.observe({ sink: this.name, camera }, (atMs - acceptedMs) / 1000)
      this.onSettled?.(record, 'delivered')
    }
    this.#delivered += records.length
    this.metrics.sinkRecords.inc({ sink: this.name, result: 'delivered' }, records.length)
    this.#showQueue()
  }

  /** Told at once for each reason, then with what came since as often as that the broker is away. */
  #reject(record: QueuedRecord, { reason, detail }: Refusal, aside: SetAside | undefined): void {
    const { id, cameraId } = record
    this.onSettled?.(record, 'rejected')
    this.#dropped += 1
    this.metrics.sinkRecords.inc({ sink: this.name, result: 'rejected' })
    this.metrics.sinkRejected.inc({ sink: this.name, reason })
    if (aside !== undefined)
      this.metrics.sinkDeadLetters.inc({
        sink: this.name,
        result: aside.failure === undefined ? 'written' : 'failed',
      })
    const known = this.#rejected.get(reason) ?? { records: 0, told: 0, toldMs: Number.NEGATIVE_INFINITY }
    known.records += 1
    this.#rejected.set(reason, known)
    const atMs = nowMs()
    if (atMs - known.toldMs < remindMs) return
    const records = known.records - known.told
    known.told = known.records
    known.toldMs = atMs
    this.log.warn(
      {
        ...{ sink: this.name, reason, detail, records, recordId: id, cameraId },
        ...(aside !== undefined && { deadLetter: aside.place }),
        ...(aside?.failure !== undefined && { deadLetterFailure: aside.failure }),
      },
      this.parts.words.refused,
    )
  }

  #leaveOut(kind: 'filtered' | 'over_limit', record: QueuedRecord): void {
    this.onSettled?.(record, kind)
    this.#filtered += 1
    this.metrics.sinkRecords.inc({ sink: this.name, result: kind })
  }

  #drop(records: number): void {
    this.#dropped += records
    this.metrics.sinkRecords.inc({ sink: this.name, result: 'dropped' }, records)
  }

  #showQueue(): void {
    this.metrics.sinkQueued.set({ sink: this.name }, this.#queue.length + this.#delivery.inFlight)
  }
}
