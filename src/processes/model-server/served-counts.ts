import {
  addUp,
  beganAnew,
  counted,
  type CountedStatistics,
  isSameModel,
} from '../../runtime/counted-statistics.js'
import type { StatisticsRecorder } from '../../runtime/statistics-recorder.js'
import { recorderOf } from '../../serving/metrics/recorder-of.js'
import { ServingMetrics } from '../../serving/metrics/serving-metrics.js'
import type { ModelManager } from '../../serving/repository/model-manager.js'
import type { ModelMetrics, ModelMetricsQuestion } from './protocol.js'

/** What is counted of the models that serve here, with what engines counted of them for cameras. */
export class ServedCounts {
  readonly #metrics = new ServingMetrics(() => this.#counts())
  /** What was counted elsewhere of models, when metrics were last asked for. */
  #forCameras: readonly CountedStatistics[] = []

  constructor(readonly manager: ModelManager) {}

  /** Prometheus text. */
  text(): Promise<string> {
    return this.#metrics.text()
  }

  /** Metrics of the models, with what was counted elsewhere. */
  async metrics({ cameras, clients: before }: ModelMetricsQuestion): Promise<ModelMetrics> {
    const clients = this.#recorders()
      .filter((recorder) => cameras.some((each) => isSameModel(each, recorder)))
      .map(counted)
    const ended = before.filter((each) =>
      beganAnew(
        each,
        clients.find((now) => isSameModel(now, each)),
      ),
    )
    this.#forCameras = addUp([...cameras, ...ended])
    return { text: await this.text(), clients, ended }
  }

  /** Of models that cameras have, what was done for both; the others as they are. */
  #counts(): readonly CountedStatistics[] {
    const others = [...this.#forCameras]
    const own = this.#recorders().map((recorder) => {
      const at = others.findIndex((each) => isSameModel(each, recorder))
      return at < 0 ? recorder : addUp([recorder, ...others.splice(at, 1)])[0]!
    })
    return [...own, ...others]
  }

  #recorders(): readonly StatisticsRecorder[] {
    const serving = this.manager.records().flatMap((record) => record.serving)
    return serving.map(recorderOf).filter((recorder) => recorder !== undefined)
  }
}
