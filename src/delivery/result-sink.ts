import type { Service } from '../lifecycle/service.js'
import type { QueuedRecord } from './record-queue.js'

/** How a sink is doing, for readiness and the page. */
export type SinkHealth = Readonly<{
  name: string
  state: 'connecting' | 'up' | 'down' | 'stopped'
  reason: string
  /** Records waiting for delivery. */
  queued: number
  delivered: number
  dropped: number
  /** Results that its filter left out. */
  filtered: number
  /** Of the dropped: records that the far side refuses for good, by reason. */
  rejected: Readonly<Record<string, number>>
}>

/** What became of a record at a sink; `filtered` and `over_limit`: it was not for it. */
export type RecordEnd = 'delivered' | 'rejected' | 'filtered' | 'over_limit' | 'dropped'

/** Where results go. `accept` never blocks, never throws and costs the caller microseconds; delivery is the sink's affair. */
export interface ResultSink extends Service {
  readonly health: SinkHealth
  /** Told of records that need no further delivery here, but for those that are dropped as too many wait. */
  onSettled: ((record: QueuedRecord, end: RecordEnd) => void) | undefined
  /** Starts connecting; does not wait for the far side. */
  start(): void
  /** Results and events, in the order of their positions. */
  accept(record: QueuedRecord): void
  /** Idempotent, never rejects. Delivers what is queued for at most `drainMs`. */
  stop(drainMs: number): Promise<void>
}
