import type { KafkaConfig } from '../../config/outputs.js'
import { eventTypes } from '../../messages/cloud-event.js'
import type { DetectionsText } from '../../messages/detections-json.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import { defaultDelivery, Delivery } from '../delivery.js'
import { KafkaLinks } from './kafka-link.js'
import { MemoryQueue } from '../memory-queue.js'
import type { QueuedRecord, RecordQueue } from '../record-queue.js'
import type { Refusal } from '../refusal.js'
import type { ResultSink, SinkHealth } from '../result-sink.js'

const name = 'kafka'
/** While the broker stays away, say so again this often. */
const remindMs = 60_000

/** Records rejected for one reason, how many of them the log knows, and since when. */
type Rejections = { records: number; told: number; toldMs: number }

export type KafkaSinkMetrics = Pick<
  ServiceMetrics,
  'sinkRecords' | 'sinkRejected' | 'sinkQueued' | 'sinkUp' | 'publish'
>

/**
 * Results as CloudEvents records, key = camera. Accepting costs a push onto a bounded queue; everything else happens behind it, so a
 * broker that is down, slow or gone delays nothing. At least once: records can repeat with the same `ce_id`.
 */
export class KafkaSink implements ResultSink {
  readonly #queue: RecordQueue
  readonly #delivery: Delivery
  #state: SinkHealth['state'] = 'connecting'
  #reason = 'not started'
  #delivered = 0
  #dropped = 0
  readonly #rejected = new Map<string, Rejections>()
  #remindedMs = Number.NEGATIVE_INFINITY
  #stopping: Promise<void> | undefined

  constructor(
    config: KafkaConfig,
    readonly metrics: KafkaSinkMetrics,
    readonly log: Log,
  ) {
    const { maxQueuedRecords, maxQueuedBytes, lingerMs, maxBatchRecords } = config
    this.#queue = new MemoryQueue({ maxRecords: maxQueuedRecords, maxBytes: maxQueuedBytes })
    this.#delivery = new Delivery(
      this.#queue,
      new KafkaLinks(config, log),
      { ...defaultDelivery, lingerMs, maxBatchRecords },
      {
        up: () => this.#up(),
        down: (reason, attempt) => this.#down(reason, attempt),
        delivered: (records) => this.#count(records),
        rejected: (record, refusal) => this.#reject(record, refusal),
      },
    )
  }

  get health(): SinkHealth {
    return {
      name,
      state: this.#state,
      reason: this.#reason,
      queued: this.#queue.length + this.#delivery.inFlight,
      delivered: this.#delivered,
      dropped: this.#dropped,
      rejected: Object.fromEntries([...this.#rejected].map(([reason, { records }]) => [reason, records])),
    }
  }

  start(): void {
    this.#reason = 'connecting'
    this.metrics.sinkUp.set({ sink: name }, 0)
    this.#delivery.start()
  }

  accept(recordId: string, { cameraId, capturedAtMs, json }: DetectionsText): void {
    if (this.#stopping !== undefined) {
      this.#drop(1)
      return
    }
    const dropped = this.#queue.push({
      id: recordId,
      type: eventTypes.detections,
      cameraId,
      time: new Date(capturedAtMs).toISOString(),
      value: json,
      acceptedMs: nowMs(),
    })
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
      this.log.info({ sink: name, records: queued, drainMs }, 'delivering what is queued before the end')
    await this.#delivery.stop(drainMs)
    const left = this.#queue.length
    if (left > 0) {
      this.#queue.settle(await this.#queue.lease(left, Number.POSITIVE_INFINITY))
      this.#drop(left)
      this.log.warn({ sink: name, records: left }, 'records not delivered before the end')
    }
    this.#state = 'stopped'
    this.#reason = 'stopped'
    this.metrics.sinkUp.set({ sink: name }, 0)
    this.#showQueue()
  }

  #up(): void {
    if (this.#state !== 'up') this.log.info({ sink: name, queued: this.#queue.length }, 'kafka up')
    this.#state = 'up'
    this.#reason = 'connected'
    this.#remindedMs = Number.NEGATIVE_INFINITY
    this.metrics.sinkUp.set({ sink: name }, 1)
  }

  #down(reason: string, attempt: number): void {
    this.#state = 'down'
    this.#reason = reason
    this.metrics.sinkUp.set({ sink: name }, 0)
    const atMs = nowMs()
    if (atMs - this.#remindedMs < remindMs) return
    this.#remindedMs = atMs
    this.log.warn({ sink: name, reason, attempt, queued: this.#queue.length }, 'kafka down, retrying')
  }

  #count(records: readonly QueuedRecord[]): void {
    const atMs = nowMs()
    for (const { acceptedMs, cameraId: camera } of records)
      this.metrics.publish.observe({ sink: name, camera }, (atMs - acceptedMs) / 1000)
    this.#delivered += records.length
    this.metrics.sinkRecords.inc({ sink: name, result: 'delivered' }, records.length)
    this.#showQueue()
  }

  /** Told at once for each reason, then with what came since as often as that the broker is away. */
  #reject({ id, cameraId }: QueuedRecord, { reason, detail }: Refusal): void {
    this.#dropped += 1
    this.metrics.sinkRecords.inc({ sink: name, result: 'rejected' })
    this.metrics.sinkRejected.inc({ sink: name, reason })
    const known = this.#rejected.get(reason) ?? { records: 0, told: 0, toldMs: Number.NEGATIVE_INFINITY }
    known.records += 1
    this.#rejected.set(reason, known)
    const atMs = nowMs()
    if (atMs - known.toldMs < remindMs) return
    const records = known.records - known.told
    known.told = known.records
    known.toldMs = atMs
    this.log.warn(
      { sink: name, reason, detail, records, recordId: id, cameraId },
      'broker refuses records for good',
    )
  }

  #drop(records: number): void {
    this.#dropped += records
    this.metrics.sinkRecords.inc({ sink: name, result: 'dropped' }, records)
  }

  #showQueue(): void {
    this.metrics.sinkQueued.set({ sink: name }, this.#queue.length + this.#delivery.inFlight)
  }
}
