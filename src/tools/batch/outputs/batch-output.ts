import type { BatchLine } from '../../../messages/batch-line.js'

/** A scored picture on its way out. */
export type ScoredItem = Readonly<{
  line: BatchLine
  /** When its file was written, and the time in the video added. */
  capturedAtMs: number
  /** The run of the model and the reading of its outputs. */
  inferMs: number
}>

/** A result that the far side refuses for good. */
export type RefusedResult = Readonly<{ line: BatchLine; reason: string }>

/**
 * Where results go. What was added is kept for sure once `flush` has resolved; what comes behind the last one is taken back when a run
 * that was cut goes on.
 */
export interface BatchOutput {
  /** @param bytes - of the output that belong to what is done; whatever is behind them is cut off. @throws BatchStateError, SystemLimitError */
  open(bytes: number): Promise<void>
  add(result: ScoredItem): void
  /** Bytes that were added and not flushed. */
  readonly waitingBytes: number
  /**
   * Keeps all that was added until the call. One at a time.
   *
   * @returns the bytes of the output that belong to what was added so far.
   * @throws SystemLimitError, KafkaUnavailableError
   */
  flush(): Promise<Readonly<{ bytes: number; refused: readonly RefusedResult[] }>>
  /** Makes the file that was asked for, of what is there. Called after the last flush, also of a run that is cut. @throws SystemLimitError */
  complete(): Promise<void>
  /** Idempotent, never rejects. */
  close(): Promise<void>
}
