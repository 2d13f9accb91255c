import type { Rendering } from './rendering.js'

/** One message on its way to everybody. */
export type BroadcastJob = Readonly<{
  position: number
  cameraId: string
  rendering: Rendering
  /** Encoded picture of the same frame. */
  picture: Buffer | undefined
  /** Monotonic time of publishing. */
  atMs: number
}>

export type StreamResult = 'sent' | 'dropped' | 'picture_sent' | 'picture_skipped' | 'rejected' | 'skipped'

/** Adds up what became of a job, so that a counter is touched once per chunk and not once per client. */
export class BroadcastTally {
  readonly #counts = new Map<StreamResult, number>()

  count(result: StreamResult, by = 1): void {
    this.#counts.set(result, (this.#counts.get(result) ?? 0) + by)
  }

  flush(counter: { inc(labels: { result: string }, by: number): void }): void {
    for (const [result, by] of this.#counts) counter.inc({ result }, by)
    this.#counts.clear()
  }
}
