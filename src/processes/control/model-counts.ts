import { addUp, type CountedStatistics } from '../../runtime/counted-statistics.js'
import { modelMetricsText } from '../../serving/metrics/serving-metrics.js'
import type { ModelMetrics, ModelMetricsQuestion } from '../model-server/protocol.js'

/** The model server, as far as it is asked here. */
export type AskModelServer = (question: ModelMetricsQuestion) => Promise<ModelMetrics | undefined>

/**
 * What models did for cameras, in all engines, and for API clients, added up. Sums outlast the processes that counted: a counter that
 * fell back to what others count would look like a start at zero.
 */
export class ModelCounts {
  readonly #engines = new Map<number, readonly CountedStatistics[]>()
  /** By processes that are gone. */
  #ended: readonly CountedStatistics[] = []
  /** Of the models of cameras, what the model server had counted when it was last asked. */
  #clients: readonly CountedStatistics[] = []

  /** An engine tells what it has counted since it began. */
  report(engine: number, counts: readonly CountedStatistics[]): void {
    this.#engines.set(engine, counts)
  }

  engineGone(engine: number): void {
    this.#keep(this.#engines.get(engine) ?? [])
    this.#engines.delete(engine)
  }

  /** By engines, those that are gone too, for cameras. */
  get cameras(): readonly CountedStatistics[] {
    return addUp([...[...this.#engines.values()].flat(), ...this.#ended])
  }

  /** Prometheus text of all models; of those of cameras alone where there is no model server, or none that answers. */
  async text(ask: AskModelServer): Promise<string> {
    const { cameras } = this
    const clients = this.#clients
    const answer = await ask({ type: 'metrics', cameras, clients })
    if (answer === undefined) {
      const all = addUp([...cameras, ...clients])
      return all.length === 0 ? '' : modelMetricsText(all)
    }
    // Another question may have been answered meanwhile.
    if (this.#clients === clients) {
      this.#clients = answer.clients
      this.#keep(answer.ended)
    }
    return answer.text
  }

  #keep(ended: readonly CountedStatistics[]): void {
    this.#ended = addUp([...this.#ended, ...ended.map((counts) => ({ ...counts, pending: 0 }))])
  }
}
