import type { CameraWork, ModelServerHealth, ModelsView } from '../../api/gantry.js'
import type { CountedStatistics } from '../../runtime/counted-statistics.js'
import { latencyOf } from '../../serving/metrics/bucket-quantile.js'
import type { ModelView } from '../../serving/model-view.js'
import type { ModelControl } from '../../serving/repository/load-planner.js'

/** The model server, as far as it is asked for its models. */
export type AskedForModels = Readonly<{
  health: ModelServerHealth
  control: ModelControl
  modelViews(): Promise<readonly ModelView[] | undefined>
}>

/** Models of API clients, with what engines did with them for cameras; of cameras alone where the model server does not tell. */
export async function modelsView(
  modelServer: AskedForModels | undefined,
  cameras: readonly CountedStatistics[],
  ensemble: string,
): Promise<ModelsView> {
  const told = await modelServer?.modelViews()
  const models = told ?? []
  const others = new Set(cameras.map(({ model }) => model))
  for (const { name } of models) others.delete(name)
  return {
    server: {
      state: modelServer?.health.state ?? 'off',
      reason: modelServer?.health.reason ?? '',
      control: modelServer?.control ?? null,
      isTold: told !== undefined,
    },
    ensemble,
    items: [...models, ...[...others].map(unknownModel)]
      .map((model) => ({
        ...model,
        forCameras: cameras.filter((each) => each.model === model.name).map(cameraWork),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  }
}

/** A model of which engines alone have told. */
function unknownModel(name: string): ModelView {
  return {
    name,
    platform: '',
    maxBatchSize: null,
    inputs: [],
    outputs: [],
    steps: [],
    isCached: false,
    versions: [],
  }
}

function cameraWork(counted: CountedStatistics): CameraWork {
  const { version, pending, inferenceCount, executionCount, inference, histograms } = counted
  return {
    version,
    frames: inferenceCount,
    runs: executionCount,
    waiting: pending,
    failures: inference.fail.count,
    inferMs: inference.compute_infer.ns / 1e6,
    latencyMs: latencyOf(histograms.request.counts),
  }
}
