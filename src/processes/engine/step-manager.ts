import { join } from 'node:path'
import { JsBackend } from '../../backends/js/js-backend.js'
import { KserveBackend } from '../../backends/kserve/kserve-backend.js'
import { onnxRuntimeBackend } from '../../backends/onnxruntime/onnxruntime-backend.js'
import type { ProviderUses } from '../../backends/onnxruntime/provider-uses.js'
import { isBuiltInStep } from '../../ensemble/built-in-steps.js'
import type { EnsembleHost } from '../../ensemble/create-ensemble-model.js'
import { BackendRegistry } from '../../serving/backend-registry.js'
import { ModelOpener } from '../../serving/model-opener.js'
import { ModelManager } from '../../serving/repository/model-manager.js'
import type { InferenceConfig } from '../../config/inference.js'
import type { Log } from '../../lifecycle/log.js'

export type EngineStepsOptions = Readonly<{
  repositories: readonly string[]
  inference: InferenceConfig
  /** GPU of the engine, for steps that name none; 0 without it. */
  deviceId?: number
  allowJsBackends: boolean
  /** Nothing runs any more on a GPU in this process. */
  onDeviceFailed?: (reason: string) => void
  /** A run of a step does not end, and only the end of the process ends it. */
  onHung: (reason: string) => void
  /** Knows where models run; absent: the log alone is told. */
  uses?: ProviderUses
  log: Log
}>

const drainMs = 1_000

/** What loads the models of steps by name, not yet started, and what finds those that serve. */
export function createStepManager(
  options: EngineStepsOptions,
  names: readonly string[],
): Readonly<{ manager: ModelManager; find: EnsembleHost['find'] }> {
  const {
    repositories,
    inference,
    deviceId = 0,
    allowJsBackends,
    onDeviceFailed,
    onHung,
    uses,
    log,
  } = options
  const find: EnsembleHost['find'] = (name, version) => {
    const record = manager.record(name)
    return version > 0 ? record?.model(version) : record?.serving.at(-1)
  }
  const opener = new ModelOpener({
    backends: new BackendRegistry([
      onnxRuntimeBackend({
        ...inference,
        devices: [deviceId],
        onDeviceFailed: ({ reason }) => onDeviceFailed?.(reason),
        ...(uses && { uses }),
      }),
      new KserveBackend(),
      new JsBackend(allowJsBackends),
    ]),
    find,
    cache: undefined,
    onHung,
    log,
  })
  const manager = new ModelManager({
    repositories,
    control: 'explicit',
    load: names,
    isBuiltIn: isBuiltInStep,
    open: (context, before) => opener.open(context, before),
    // What cameras run is trusted: it is named by the pipeline file.
    probe: () => Promise.resolve(),
    uploadDir: join(repositories[0] ?? '', '.none'),
    drainMs,
    log,
  })
  return { manager, find }
}
