/** Publishes a retained message, and resolves once the broker has it. */
export type PublishRetained = (topic: string, payload: string) => Promise<void>

/**
 * What is to stand in topics that a broker retains, and what it is known to have. Only what differs is published; after a connection has
 * ended nothing is known any more. Nothing queues up: of a topic that changes often, what it says last is what goes.
 */
export class RetainedTopics {
  readonly #wanted = new Map<string, string>()
  #told = new Map<string, string>()
  #publish: PublishRetained | undefined
  #running: Promise<void> | undefined
  #again = false

  set(topic: string, payload: string): void {
    this.#wanted.set(topic, payload)
  }

  /** The broker is to forget it. */
  remove(topic: string): void {
    // An empty payload takes a retained message away (MQTT 5, 3.3.1.3).
    if (this.#wanted.has(topic)) this.#wanted.set(topic, '')
  }

  /** A connection stands: everything goes out again, as the broker may have lost it. */
  connected(publish: PublishRetained): void {
    this.#told = new Map()
    this.#publish = publish
  }

  disconnected(): void {
    this.#publish = undefined
  }

  /** Publishes what differs. Never rejects: what failed is tried with the next flush. */
  flush(): Promise<void> {
    this.#again = true
    this.#running ??= this.#run().finally(() => (this.#running = undefined))
    return this.#running
  }

  async #run(): Promise<void> {
    while (this.#again) {
      this.#again = false
      const publish = this.#publish
      if (publish === undefined) return
      const due = [...this.#wanted].filter(([topic, payload]) => this.#told.get(topic) !== payload)
      const told = this.#told
      await Promise.allSettled(
        due.map(async ([topic, payload]) => {
          await publish(topic, payload)
          told.set(topic, payload)
          if (payload !== '' || this.#wanted.get(topic) !== '') return
          this.#wanted.delete(topic)
          told.delete(topic)
        }),
      )
    }
  }
}
