import type { QueuedRecord } from './record-queue.js'

/** One connection to the far side. After a failed `send` it must be closed and a new one opened. */
export interface RecordLink {
  /**
   * Resolves once all records are acknowledged.
   *
   * @throws when it is not certain that all are; some may have been taken.
   */
  send(records: readonly QueuedRecord[], deadlineMs: number): Promise<void>
  /** At once; what is under way fails. Idempotent. */
  close(): void
}

/** @throws when the far side cannot be reached in time. */
export type OpenLink = (signal: AbortSignal) => Promise<RecordLink>
