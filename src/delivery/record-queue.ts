import type { EventType } from '../messages/cloud-event.js'

/** A record that was accepted and is not yet delivered. */
export type QueuedRecord = Readonly<{
  /** Stable across retries. */
  id: string
  type: EventType
  /** Key of the record; records of one camera keep their order. */
  cameraId: string
  /** UTC time of capture, RFC 3339. */
  time: string
  /** JSON, UTF-8. */
  value: Buffer
  /** Monotonic time of acceptance. */
  acceptedMs: number
}>

/**
 * Between acceptance and delivery. A record is leased for delivery, then settled once it is delivered or given up, or released
 * when delivery ended before it was tried. Today's is bounded and in memory; a durable outbox takes its place behind this seam.
 */
export interface RecordQueue {
  /** Records not leased. */
  readonly length: number
  readonly oldestAcceptedMs: number | undefined
  /** @returns how many of the oldest had to go. */
  push(record: QueuedRecord): number
  /** The oldest records, at most so many and so large; one at least while there is any. */
  lease(maxRecords: number, maxBytes: number): Promise<readonly QueuedRecord[]>
  /** The leased records need no further delivery. */
  settle(leased: readonly QueuedRecord[]): void
  /** The leased records go back to where they were. */
  release(leased: readonly QueuedRecord[]): void
}
