import type { ProviderUse } from '../backends/onnxruntime/provider-uses.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { ScheduledModel } from '../runtime/scheduled-model.js'
import type { ModelStatistics, requestDurations } from '../runtime/statistics.js'
import type { StatisticsRecorder } from '../runtime/statistics-recorder.js'
import { latencyOf } from './metrics/bucket-quantile.js'
import { recorderOf } from './metrics/recorder-of.js'
import type { IndexEntry } from './model-server.js'
import { CachedModel } from './response-cache/cached-model.js'
import { ServedModel } from './repository/served-model.js'
import type { ModelManager } from './repository/model-manager.js'

/** How often something was done, and the milliseconds of all of them. */
export type DurationView = Readonly<{ count: number; ms: number }>

export type TensorView = Readonly<{
  name: string
  datatype: string
  /** As requests have it, with the batch dimension; -1 is a free size. */
  shape: readonly number[]
}>

/** What one version was asked, and what became of it, since it was loaded. */
export type ModelWork = Readonly<{
  /** Requests that wait for an instance now. */
  waiting: number
  /** Items inferred, cache hits left out. */
  items: number
  /** Runs, cache hits left out. */
  runs: number
  /** Wall time; `null` before the first request. */
  lastMs: number | null
  durations: Readonly<Record<(typeof requestDurations)[number], DurationView>>
  /** Of requests from their arrival to their answer; `null` before the first. Read from buckets, so about. */
  latencyMs: Readonly<{ p50: number; p99: number }> | null
  /** Failed requests, by reason; those that did not happen are left out. */
  failures: Readonly<Record<string, number>>
  /** Runs by their size, smallest first, and the time of the model in all of them. */
  batches: readonly Readonly<{ size: number; runs: number; inferMs: number }>[]
}>

export type ModelVersionView = Readonly<{
  /** Empty where no version is known. */
  version: string
  state: IndexEntry['state']
  /** Why it does not serve, for people; empty where it does. */
  reason: string
  /** Time that its load took; `null` while it does not serve. */
  loadMs: number | null
  instances: Readonly<{ count: number; ready: number }> | null
  /** Providers that it runs on, with the number of the GPU where they have one: `cpu`, `cuda:0`. */
  places: readonly string[]
  /** Why it does not run on providers that are installed. */
  failedPlaces: readonly string[]
  work: ModelWork | null
}>

/** A model of the repositories, with each of its versions, lowest first. */
export type ModelView = Readonly<{
  name: string
  /** Empty while no version serves. */
  platform: string
  maxBatchSize: number | null
  inputs: readonly TensorView[]
  outputs: readonly TensorView[]
  /** Models that an ensemble runs, in their order. */
  steps: readonly string[]
  /** Whether answers are looked up in the response cache. */
  isCached: boolean
  versions: readonly ModelVersionView[]
}>

/** Every model of the repositories, by name. */
export function modelViews(
  manager: Pick<ModelManager, 'index' | 'record'>,
  uses: readonly ProviderUse[],
): readonly ModelView[] {
  const byName = new Map<string, IndexEntry[]>()
  for (const entry of manager.index(false)) byName.set(entry.name, [...(byName.get(entry.name) ?? []), entry])
  return [...byName].map(([name, entries]) => {
    const serving = manager.record(name)?.serving ?? []
    const newest = serving.at(-1)
    return {
      name,
      platform: newest?.platform ?? '',
      maxBatchSize: newest?.config.max_batch_size ?? null,
      inputs: newest?.inputs.map(tensorView) ?? [],
      outputs: newest?.outputs.map(tensorView) ?? [],
      steps: newest?.config.ensemble_scheduling?.step.map(({ model_name }) => model_name) ?? [],
      isCached: newest?.config.response_cache?.enable === true,
      versions: entries.map((entry) =>
        versionView(
          entry,
          serving.find(({ version }) => version === entry.version),
          uses.filter((use) => use.model === name && use.version === entry.version),
        ),
      ),
    }
  })
}

function tensorView({ name, datatype, shape }: LoadedModel['inputs'][number]): TensorView {
  return { name, datatype, shape: [...shape] }
}

function versionView(
  { version, state, reason }: IndexEntry,
  model: LoadedModel | undefined,
  uses: readonly ProviderUse[],
): ModelVersionView {
  const recorder = model && recorderOf(model)
  const instances = model && scheduledIn(model)?.parts.instances
  return {
    version,
    state,
    reason,
    loadMs: recorder === undefined ? null : recorder.loadSeconds * 1_000,
    instances: instances === undefined ? null : { count: instances.size, ready: instances.ready },
    places: [...new Set(uses.filter(({ failure }) => failure === '').map(placeText))].sort(),
    failedPlaces: [
      ...new Set(
        uses.filter(({ failure }) => failure !== '').map((use) => `${placeText(use)}: ${use.failure}`),
      ),
    ],
    work: model === undefined ? null : workOf(model.statistics(), recorder),
  }
}

function placeText({ provider, device }: ProviderUse): string {
  return device === '' ? provider : `${provider}:${device}`
}

function workOf(
  { inference, inferenceCount, executionCount, lastInferenceMs, batches }: ModelStatistics,
  recorder: StatisticsRecorder | undefined,
): ModelWork {
  return {
    waiting: recorder?.pending ?? 0,
    items: inferenceCount,
    runs: executionCount,
    lastMs: lastInferenceMs === 0 ? null : lastInferenceMs,
    durations: Object.fromEntries(
      Object.entries(inference).map(([name, { count, ns }]) => [name, { count, ms: ns / 1e6 }]),
    ) as ModelWork['durations'],
    latencyMs: latencyOf(recorder?.histograms.request.counts ?? []),
    failures: Object.fromEntries(Object.entries(recorder?.failures ?? {}).filter(([, count]) => count > 0)),
    batches: batches.map(({ batchSize, computeInfer: { count, ns } }) => ({
      size: batchSize,
      runs: count,
      inferMs: ns / 1e6,
    })),
  }
}

/** The model with the instances, whatever stands in front of it; an ensemble has none. */
function scheduledIn(model: LoadedModel): ScheduledModel | undefined {
  if (model instanceof ServedModel || model instanceof CachedModel) return scheduledIn(model.inner)
  return model instanceof ScheduledModel ? model : undefined
}
