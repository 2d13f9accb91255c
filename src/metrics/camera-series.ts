import type { Counter, Gauge, Histogram } from 'prom-client'

export type LabelledMetric = Counter | Gauge | Histogram

/** Removed cameras whose series stay, so that a scrape still reads how their last frames ended. */
export const mostRetired = 32

/**
 * Keeps the series of cameras bounded: whoever adds and removes cameras under ever new ids would fill memory and every scrape with
 * those of cameras long gone.
 */
export class CameraSeries {
  /** Ids of removed cameras, the one removed longest ago first. */
  readonly #retired = new Set<string>()

  /** @param metrics - those with a label `camera`. */
  constructor(readonly metrics: readonly LabelledMetric[]) {}

  /** A camera with this id is there: its series stay. */
  keep(camera: string): void {
    this.#retired.delete(camera)
  }

  /** The camera was removed: its series stay until enough others have been removed after it. */
  async retire(camera: string): Promise<void> {
    this.#retired.delete(camera)
    this.#retired.add(camera)
    for (const oldest of this.#retired) {
      if (this.#retired.size <= mostRetired) return
      this.#retired.delete(oldest)
      await Promise.all(this.metrics.map((metric) => removeSeries(metric, oldest)))
    }
  }
}

async function removeSeries(metric: LabelledMetric, camera: string): Promise<void> {
  const { values } = await metric.get()
  const sets = values.filter(({ labels }) => labels['camera'] === camera).map(({ labels }) => labels)
  // A histogram has a value for each of its buckets, and takes labels without them.
  for (const { le: _, ...labels } of sets as Record<string, string | number>[]) metric.remove(labels)
}
