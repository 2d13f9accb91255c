import { repositoriesFrom } from '../../repository/repository-files.js'
import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { ModelServerProcess } from '../model-server/model-server-process.js'
import type { Engines, EnginesDeps } from './engines.js'
import { EnsembleChange } from './ensemble-change.js'
import type { StoredRepositories } from './stored-repositories.js'

/** A camera with fewer is measured while the ensembles are compared. */
const leastResults = 100

/** What changes the ensemble of the cameras of a service. */
export function camerasEnsemble(
  deps: Pick<EnginesDeps, 'engineSetup' | 'log'> &
    Readonly<{
      directory: CameraDirectory
      repositories: Pick<StoredRepositories, 'refresh'>
      modelServer: ModelServerProcess | undefined
      metrics: ServiceMetrics
    }>,
  engines: Engines,
): EnsembleChange {
  const { engineSetup, directory, repositories, modelServer, metrics, log } = deps
  const repositoriesFor = (name: string) => repositoriesFrom(engineSetup.repositories, name)
  const change = new EnsembleChange({
    configured: engineSetup.ensemble,
    engines: () => engines.serving,
    repositoriesFor,
    check: async (name) => {
      // Who asks for it has uploaded it just now.
      await repositories.refresh()
      // What reads model files is not loaded into this process before it is needed.
      const { checkCameraModel } = await import('../../ensemble/check-camera-model.js')
      checkCameraModel(repositoriesFor(name), name)
    },
    p99Ms: () =>
      new Map(
        [...directory].flatMap(({ config, status, p99Ms, latencies }) =>
          status.state === 'live' && p99Ms !== undefined && latencies >= leastResults
            ? [[config.id, p99Ms] as const]
            : [],
        ),
      ),
    forgetP99: () => {
      for (const entry of directory) entry.forgetLatency()
    },
    uses: (index, detector, isInForce) => {
      engines.uses(index, detector)
      if (isInForce) modelServer?.camerasRun(detector.detector.name, detector.format.input)
    },
    keep: (model) => engines.startWith(model),
    metrics,
    log,
  })
  engines.isChanging = () => change.isUnderWay
  return change
}
