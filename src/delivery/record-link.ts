import type { OutgoingRecord } from './record-queue.js'
import type { Refusal } from './refusal.js'

/** Where a record stays that is refused for good. */
export type SetAside = Readonly<{
  /** Name of the place, for people. */
  place: string
  /** Why it could not be put there; absent where it is there. */
  failure?: string
}>

/**
 * One connection to the far side. After a failed `send` it must be closed and a new one opened, unless the records were refused: then
 * those of each partition may be sent again, first all of them and, if they are refused again, in parts.
 */
export interface RecordLink {
  /**
   * Resolves once all records are acknowledged.
   *
   * @param taken - told of records as they are acknowledged, where that is not of all at once; all of a partition together. It is not
   * called any more once the promise has settled.
   * @throws when it is not certain that all are. Of one partition all or none were taken; those that `taken` was told of are, and need
   * not be sent again.
   */
  send<R extends OutgoingRecord>(
    records: readonly R[],
    deadlineMs: number,
    taken?: (records: readonly R[]) => void,
  ): Promise<void>
  /** What the record shares its fate and its order with, as of the last `send`. */
  partitionOf(record: OutgoingRecord): string
  /**
   * Puts a record that is refused for good where somebody can look at it.
   *
   * @returns where it is, or why it is not and will not be; undefined where there is no such place.
   * @throws where another connection may do it; the link must be closed then.
   */
  setAside?(record: OutgoingRecord, refusal: Refusal, deadlineMs: number): Promise<SetAside | undefined>
  /** What stands in the way of the send under way, as far as it is known, for people. */
  trouble?(): string | undefined
  /** Calls back once, when the connection has ended by itself while nothing was sent; absent where that is noticed by sending alone. */
  onEnd?(ended: (error: Error) => void): void
  /** At once; what is under way fails. Idempotent. */
  close(): void
}

/** What an error of a link says. */
export type SendFailure = Readonly<{
  /** For people. */
  reason: string
  /** Absent: it is no word on the records, and they are sent again. */
  refusal: Refusal | undefined
  /** The far side was reached, and ended the connection over what it was sent. */
  closed: boolean
  /** There was no answer in time. */
  missed: boolean
  /** How long the far side wants to be left alone, where it says so. */
  retryAfterMs?: number
}>

/** Opens connections to one far side, one after the other, and knows its errors. */
export interface RecordLinks {
  /**
   * @param careful - a send fails soon, with its reason, instead of being tried on until its deadline.
   * @throws when the far side cannot be reached in time.
   */
  open(signal: AbortSignal, careful: boolean): Promise<RecordLink>
  /** @param error - of `open`, of a `send`, or a RecordsRefusedError. */
  failureOf(error: unknown): SendFailure
}
