import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export type Labels = Readonly<Record<string, string>>
export type Sample = Readonly<{ labels: Labels; value: number; metricName?: string }>
export type Description = Readonly<{ name: string; help: string; registry: Registry }>

/** A counter whose values are read from elsewhere when it is asked for them. */
export class CollectedCounter extends Counter {
  constructor(
    { name, help, registry }: Description,
    readonly samples: () => readonly Sample[],
  ) {
    super({ name, help, registers: [registry] })
  }

  override async get(): ReturnType<Counter['get']> {
    return { ...(await super.get()), values: [...this.samples()] }
  }
}

/** A gauge whose values are read from elsewhere when it is asked for them. */
export class CollectedGauge extends Gauge {
  constructor(
    { name, help, registry }: Description,
    readonly samples: () => readonly Sample[],
  ) {
    super({ name, help, registers: [registry] })
  }

  override async get(): ReturnType<Gauge['get']> {
    return { ...(await super.get()), values: [...this.samples()] }
  }
}

/** A histogram that is kept elsewhere. Its samples are those of the text format, by `metricName`. */
export class CollectedHistogram extends Histogram {
  readonly #description: Histogram

  constructor(
    { name, help, registry }: Description,
    readonly samples: () => readonly Sample[],
  ) {
    super({ name, help, registers: [registry] })
    this.#description = new Histogram({ name, help, registers: [] })
  }

  override get(): ReturnType<Histogram['get']> {
    return this.getForPromString()
  }

  /** The registry asks for this form first; the types of prom-client do not know it. */
  async getForPromString(): ReturnType<Histogram['get']> {
    return { ...(await this.#description.get()), values: [...this.samples()] }
  }
}
