import { onTestFinished } from 'vitest'
import type { ExecutionProvider } from '../../src/config/inference.js'
import { isBuiltInStep } from '../../src/ensemble/built-in-steps.js'
import { BackendRegistry } from '../../src/serving/backend-registry.js'
import { JsBackend } from '../../src/backends/js/js-backend.js'
import { KserveBackend } from '../../src/backends/kserve/kserve-backend.js'
import { onnxRuntimeBackend } from '../../src/backends/onnxruntime/onnxruntime-backend.js'
import { recorderOf } from '../../src/serving/metrics/recorder-of.js'
import { ServingMetrics } from '../../src/serving/metrics/serving-metrics.js'
import { LocalModelServer } from '../../src/serving/local-model-server.js'
import { ModelOpener } from '../../src/serving/model-opener.js'
import { ModelManager } from '../../src/serving/repository/model-manager.js'
import type { ResponseCache } from '../../src/serving/response-cache/response-cache.js'
import { MemorySettings } from '../../src/serving/settings.js'
import { SharedRegions } from '../../src/serving/shared-memory/shared-regions.js'
import { SharedTensors } from '../../src/serving/shared-memory/shared-tensors.js'
import type { Tracer } from '../../src/runtime/tracing/tracer.js'
import { nothingIsMissing, gpuWorkers } from './simulated-gpus.js'
import { silentLog } from './silent-log.js'
import { tempDir } from './temp-dir.js'

type RepositoryOptions = Readonly<{
  cache?: ResponseCache
  control?: 'none' | 'explicit'
  tracer?: Tracer
  maxResponseBytes?: number
  /** Clients may use shared memory; most bytes of it that a request may name. */
  sharedBytes?: number
  /** With CUDA, as `one-shape.ts` has it, for models of KIND_GPU. */
  onGpu?: boolean
  /** Models may be JavaScript files. */
  allowJs?: boolean
  providers?: readonly ExecutionProvider[]
}>

/** Serves a folder of models in this process, as the model server does; it ends with the test. */
export async function serveRepository(
  dir: string,
  {
    cache,
    control = 'none',
    tracer,
    maxResponseBytes,
    sharedBytes,
    onGpu = false,
    allowJs = false,
    providers = onGpu ? ['cuda', 'cpu'] : ['cpu'],
  }: RepositoryOptions = {},
): Promise<LocalModelServer> {
  const log = silentLog()
  const opener: ModelOpener = new ModelOpener({
    backends: new BackendRegistry([
      onnxRuntimeBackend({
        providers: [...providers],
        devices: [0],
        intraOpThreads: 1,
        ...(onGpu ? { workerEntry: gpuWorkers.onnx, missing: nothingIsMissing } : {}),
      }),
      new KserveBackend(maxResponseBytes),
      new JsBackend(allowJs),
    ]),
    find: (name: string) => {
      try {
        return manager.find(name, '')
      } catch {
        return undefined
      }
    },
    cache,
    onHung: (reason) => {
      throw new Error(reason)
    },
    log,
  })
  const manager: ModelManager = new ModelManager({
    repositories: [dir],
    control,
    load: ['*'],
    onGpu,
    isBuiltIn: isBuiltInStep,
    open: (context, before) => opener.open(context, before),
    probe: () => Promise.resolve(),
    uploadDir: tempDir(),
    drainMs: 5_000,
    log,
  })
  onTestFinished(() => manager.stop())
  const recorders = () =>
    manager.records().flatMap(({ serving }) => serving.flatMap((model) => recorderOf(model) ?? []))
  const metrics = new ServingMetrics(recorders)
  const settings = new MemorySettings(undefined, tracer)
  const server = new LocalModelServer({
    version: '1',
    manager,
    settings,
    ...(tracer === undefined ? {} : { tracer }),
    ...(sharedBytes === undefined
      ? {}
      : { sharedTensors: new SharedTensors(new SharedRegions(), sharedBytes) }),
    ...(maxResponseBytes === undefined ? {} : { maxResponseBytes }),
    metrics: () => metrics.text(),
  })
  await manager.start()
  return server
}
