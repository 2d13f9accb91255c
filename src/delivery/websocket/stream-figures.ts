export type StreamResult = 'sent' | 'dropped' | 'picture_sent' | 'picture_skipped' | 'rejected' | 'skipped'

/** What the hub did since the last reading. */
export type StreamReading = Readonly<{
  messages: Readonly<Partial<Record<StreamResult, number>>>
  /** One for each message that went through: its camera, and seconds from its publishing until the last client was served. */
  published: readonly (readonly [cameraId: string, seconds: number])[]
}>

/** Figures of the hub, gathered where it runs and read by whoever keeps the metrics. */
export class StreamFigures {
  #messages: Partial<Record<StreamResult, number>> = {}
  #published: (readonly [cameraId: string, seconds: number])[] = []

  count(result: StreamResult, by = 1): void {
    this.#messages[result] = (this.#messages[result] ?? 0) + by
  }

  published(cameraId: string, seconds: number): void {
    this.#published.push([cameraId, seconds])
  }

  /** Begins anew. */
  take(): StreamReading {
    const reading = { messages: this.#messages, published: this.#published }
    this.#messages = {}
    this.#published = []
    return reading
  }
}
