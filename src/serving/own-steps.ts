import { EnsembleModel } from '../ensemble/ensemble-model.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { ServedModel } from './repository/served-model.js'
import { CachedModel } from './response-cache/cached-model.js'
import { requestDurations, type Duration, type ModelStatistics } from '../runtime/statistics.js'

/**
 * The built-in steps of that name, one for each ensemble that has it. They are in no repository, but clients ask for the metadata,
 * the configuration and the statistics of every step that an ensemble names.
 */
export function ownStepsNamed(models: readonly LoadedModel[], name: string): readonly LoadedModel[] {
  return models.flatMap((model) => ensembleOf(model)?.ownSteps.filter((step) => step.name === name) ?? [])
}

function ensembleOf(model: LoadedModel): EnsembleModel | undefined {
  if (model instanceof ServedModel || model instanceof CachedModel) return ensembleOf(model.inner)
  return model instanceof EnsembleModel ? model : undefined
}

/** Statistics of steps that have one name, as those of one model. */
export function sumOfStatistics(all: readonly ModelStatistics[]): ModelStatistics | undefined {
  const [first] = all
  if (first === undefined || all.length === 1) return first
  return all.slice(1).reduce(added, first)
}

function added(a: ModelStatistics, b: ModelStatistics): ModelStatistics {
  return {
    ...a,
    lastInferenceMs: Math.max(a.lastInferenceMs, b.lastInferenceMs),
    inferenceCount: a.inferenceCount + b.inferenceCount,
    executionCount: a.executionCount + b.executionCount,
    inference: Object.fromEntries(
      requestDurations.map((part) => [part, sum(a.inference[part], b.inference[part])]),
    ) as ModelStatistics['inference'],
    batches: addedBatches(a.batches, b.batches),
    memory: [...a.memory, ...b.memory],
  }
}

function addedBatches(
  a: ModelStatistics['batches'],
  b: ModelStatistics['batches'],
): ModelStatistics['batches'] {
  const others = new Map(b.map((batch) => [batch.batchSize, batch]))
  const both = a.map((batch) => {
    const other = others.get(batch.batchSize)
    if (other === undefined) return batch
    others.delete(batch.batchSize)
    return {
      batchSize: batch.batchSize,
      computeInput: sum(batch.computeInput, other.computeInput),
      computeInfer: sum(batch.computeInfer, other.computeInfer),
      computeOutput: sum(batch.computeOutput, other.computeOutput),
    }
  })
  return [...both, ...others.values()]
}

function sum(a: Duration, b: Duration): Duration {
  return { count: a.count + b.count, ns: a.ns + b.ns }
}
