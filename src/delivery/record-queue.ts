import type { EventType } from '../messages/cloud-event.js'

/** What goes to a far side. */
export type OutgoingRecord = Readonly<{
  /** Stable across retries and restarts. */
  id: string
  type: EventType
  /** Key of the record; records of one camera keep their order. */
  cameraId: string
  /** UTC time of capture, RFC 3339. */
  time: string
  /** JSON, UTF-8. */
  value: Buffer
  /** Of the frame, where it is traced. */
  traceparent?: string | undefined
}>

/** A record that was accepted and is not yet delivered. */
export type QueuedRecord = OutgoingRecord &
  Readonly<{
    /** Place among all records; it grows. */
    position: number
    /** Otherwise it is in memory alone. */
    isStored: boolean
    /** The one sink that it is for; absent: all of them. */
    sink?: string
    /** Monotonic time of acceptance. */
    acceptedMs: number
  }>

/**
 * Between acceptance and delivery. A record is leased for delivery, then settled once it is delivered or given up, or released
 * when delivery ended before it was tried. Leases are taken one after the other.
 */
export interface RecordQueue {
  /** Records not leased. */
  readonly length: number
  /** Monotonic. */
  readonly oldestAcceptedMs: number | undefined
  /** @returns how many of the oldest had to go. */
  push(record: QueuedRecord): number
  /**
   * The oldest records, at most so many and so large; one at least while there is any.
   *
   * @throws where they cannot be read now.
   */
  lease(maxRecords: number, maxBytes: number): Promise<readonly QueuedRecord[]>
  /** The leased records need no further delivery. */
  settle(leased: readonly QueuedRecord[]): void
  /** The leased records go back to where they were. */
  release(leased: readonly QueuedRecord[]): void
  /** The end. @returns how many were not delivered: those lost with the process, and those that the next one will deliver. */
  close(): Readonly<{ lost: number; kept: number }>
}
