import { failuresIn, type ProviderUse } from '../../backends/onnxruntime/provider-uses.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { EngineProcess } from '../engine/engine-process.js'
import type { ModelServerProcess } from '../model-server/model-server-process.js'

type Engines = readonly Pick<EngineProcess, 'health' | 'providers'>[]
type ModelServer = Pick<ModelServerProcess, 'health' | 'providers'> | undefined

/** GPUs that should run models and do not, for people. Work is done, so that they make nothing unready. */
export function providerFailures(engines: Engines, modelServer: ModelServer): readonly string[] {
  return [
    ...engines.flatMap(({ health: { index, detector }, providers }) => {
      const failures = detector?.providerFailures ?? []
      const others = failuresIn(providers).filter((failure) => !failures.includes(failure))
      return [
        ...failures.map((failure) => `engine ${index} runs on ${detector?.provider}: ${failure}`),
        ...others.map((failure) => `parts of engine ${index} run elsewhere, or not at all: ${failure}`),
      ]
    }),
    ...(modelServer?.health.providerFailures ?? []).map(
      (failure) => `models of clients run elsewhere, or not at all: ${failure}`,
    ),
  ]
}

/** `gantry_execution_provider`, as it is now. */
export function measureProviders(
  { executionProvider }: Pick<ServiceMetrics, 'executionProvider'>,
  engines: Engines,
  modelServer: ModelServer,
): void {
  executionProvider.reset()
  for (const { health, providers } of engines)
    for (const use of inUseFirst(providers))
      executionProvider.set(labelsOf(use, String(health.index)), valueOf(use))
  for (const use of inUseFirst(modelServer?.providers ?? []))
    executionProvider.set(labelsOf(use), valueOf(use))
}

/** One that fails for some of the instances comes last, and is what the metric says. */
function inUseFirst(uses: readonly ProviderUse[]): readonly ProviderUse[] {
  return uses.toSorted((a, b) => valueOf(b) - valueOf(a))
}

function valueOf({ failure }: ProviderUse): 0 | 1 {
  return failure === '' ? 1 : 0
}

function labelsOf({ model, version, provider, device }: ProviderUse, engine?: string) {
  return { ...(engine !== undefined && { engine }), model, version, provider, device }
}
