import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace'

/** Ids as the library makes them; that of the next trace can be known before the trace begins, as its sampling is decided by it. */
export class TraceIds implements IdGenerator {
  readonly #random = new RandomIdGenerator()
  #ahead: string | undefined

  /** The same until it is given away. */
  ahead(): string {
    return (this.#ahead ??= this.#random.generateTraceId())
  }

  generateTraceId(): string {
    const id = this.ahead()
    this.#ahead = undefined
    return id
  }

  generateSpanId(): string {
    return this.#random.generateSpanId()
  }
}
