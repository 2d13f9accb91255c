import type { ModelConfig, ModelInstanceGroup } from '../repository/model-config.js'
import { checkCompleted } from '../repository/supported-config.js'
import type { Log } from '../lifecycle/log.js'
import type { OpenedModel } from './backend.js'
import { type SizeCost, tellSizes, warnOfColdSizes } from './batch-sizes.js'
import { roomForOthers } from './memory/room-for-others.js'
import type { MemoryAccounts } from './memory/memory-accounts.js'
import { outputLabels } from '../repository/output-labels.js'
import type { StatisticsRecorder } from './statistics-recorder.js'
import { batchingPays, type BatchingProbe } from './batching-probe.js'
import { requestRules } from './check-request.js'
import { InstanceGroup, type ModelInstances } from './instance-group.js'
import { ShortRuns } from './instances/short-runs.js'
import { instanceClaims } from './rate-limit/claims.js'
import type { RateLimiter } from './rate-limit/rate-limiter.js'
import { outputShapes } from './output-shapes.js'
import { RequestOutcome } from './request-outcome.js'
import { RequestScheduler, requestSchedulerRules } from './request-scheduler.js'
import { type SchedulerClock, timers } from './scheduler-clock.js'
import { ScheduledModel, type Scheduler } from './scheduled-model.js'
import { slowRunTeller } from './slow-runs.js'
import { sequenceStrategy } from './policies/sequence.js'
import { sequenceControls } from './sequence-controls.js'
import { type SequenceRules, SequenceScheduler } from './sequence-scheduler.js'
import { implicitState } from './sequence-state.js'
import { warmUp, warmUpRequests } from './warm-up.js'

export type ScheduledModelOptions = Readonly<{
  name: string
  version: string
  /** `<repository>/<model>`, for labels and warm-up data. */
  modelDir: string
  /** Created when the load began. */
  statistics: StatisticsRecorder
  log: Log
  /** A run does not end. A thread cannot be ended inside a run, so the process has to be. */
  onHung: (reason: string) => void
  /** Longest a run may take; default five minutes. */
  hungAfterMs?: number
  /** `undefined` where it is off: nothing waits for resources. */
  rateLimiter?: RateLimiter | undefined
  /** Where what it takes of memory is charged; absent: nowhere. */
  memory?: MemoryAccounts | undefined
  /** Knows, or else measures, whether batching that nobody asked for pays; absent: it is measured. */
  batching?: (config: ModelConfig, measure: () => Promise<BatchingProbe>) => Promise<BatchingProbe>
  clock?: SchedulerClock
}>

const defaultHungAfterMs = 300_000
const defaultSequenceIdleUs = 1_000_000

/**
 * Starts the instances of a model and puts its scheduler in front of them. The opened model belongs to the result, and is closed
 * if this throws.
 *
 * @throws ModelConfigError, ModelLabelsError, what a start of an instance throws
 */
export async function createScheduledModel(
  opened: OpenedModel,
  options: ScheduledModelOptions,
): Promise<ScheduledModel> {
  try {
    return await start(opened, options)
  } catch (error) {
    await opened.close()
    throw error
  }
}

async function start(opened: OpenedModel, options: ScheduledModelOptions): Promise<ScheduledModel> {
  const { name, version, modelDir, statistics, log, rateLimiter, clock = timers } = options
  checkCompleted(opened.config, name)
  const labels = outputLabels(opened.config, modelDir, opened.labels)
  if (labels.size === 0 && opened.labelsProblem !== undefined) log.warn({ model: name }, opened.labelsProblem)
  const sequences = await openSequences(name, opened.config, modelDir)
  const warmUps = await warmUpRequests(opened.config, modelDir)
  let instanceFreed: () => void = () => undefined
  let sizesChanged: () => void = () => undefined
  let breakModel: (reason: string) => void = () => undefined
  const broken = new Promise<string>((resolve) => (breakModel = resolve))
  const memory = options.memory?.open(name)
  const instances: ModelInstances = new InstanceGroup({
    name,
    count: () => instanceCount(opened.config),
    start: async (index, onBegan) => {
      const instance = await opened.start(index, onBegan)
      await warmUp(instance, warmUps)
      return instance
    },
    clock,
    log,
    onIdle: () => instanceFreed(),
    onHung: (instance, forMs) => options.onHung(`instance ${instance} has not ended a run for ${forMs} ms`),
    runTimeoutMs: options.hungAfterMs ?? defaultHungAfterMs,
    onBroken: breakModel,
    onSizes: () => sizesChanged(),
    onSizesLeftOut: (leftOut, error) => warnOfColdSizes(log, name, leftOut, error),
    beforeOthers: roomForOthers(name, memory && (() => memory.takenNow())),
    shortRuns: new ShortRuns(({ times }) => times.computeInferNs / 1e6),
    turns: rateLimiter?.register(instanceClaims(opened.config)),
    memory,
    isReplaceable: opened.isReplaceable,
  })
  statistics.onSlowRun = slowRunTeller(name, () => opened.onGpu?.() ?? false, log)
  const outcome = new RequestOutcome(statistics, outputShapes(opened.config))
  await instances.start()
  const chosen = await settleBatching(opened, instances, options).catch(async (error: unknown) => {
    await instances.stop(5_000)
    throw error
  })
  memory?.loaded()
  const rulesNow = () => requestSchedulerRules(chosen.config, instances.sizes?.warm)
  const scheduler: Scheduler =
    sequences === undefined
      ? new RequestScheduler(rulesNow(), instances, outcome, statistics, clock)
      : new SequenceScheduler(sequences(instances.sizes?.warm), instances, outcome, statistics, clock)
  instanceFreed = () => scheduler.pump()
  sizesChanged = () => {
    const { sizes } = instances
    if (sizes === undefined) return
    statistics.sizes = sizes.warm
    if (scheduler instanceof RequestScheduler) scheduler.useBatches(rulesNow().batches)
    if (sizes.toCome.length === 0) tellSizes(log, name, sizes.warm)
  }
  sizesChanged()
  instances.warmSizes()
  statistics.recordLoaded()
  const rules = requestRules(name, chosen.config, opened.scalarInputs)
  return new ScheduledModel({
    name,
    version,
    opened: chosen,
    modelDir,
    rules,
    labels,
    instances,
    scheduler,
    outcome,
    statistics,
    broken,
  })
}

/** Instances of all groups that take part; a group has one per GPU it names, and a model without groups has one. */
export function instanceCount({ instance_group }: ModelConfig): number {
  const count = (group: ModelInstanceGroup) => Math.max(1, group.count ?? 1) * Math.max(1, group.gpus.length)
  const active = instance_group.filter((group) => group.passive !== true)
  return active.length === 0 ? 1 : active.reduce((sum, group) => sum + count(group), 0)
}

/** What is known of a model's sequences before it runs. @throws ModelConfigError naming the state */
async function openSequences(
  model: string,
  config: ModelConfig,
  modelDir: string,
): Promise<((costs: readonly SizeCost[] | undefined) => SequenceRules) | undefined> {
  const batching = config.sequence_batching
  if (batching === undefined) return undefined
  const idleUs = batching.max_sequence_idle_microseconds ?? 0
  const state = await implicitState(config, modelDir)
  return (costs) => ({
    model,
    strategy: sequenceStrategy(batching, config.max_batch_size ?? 0, costs),
    idleMs: (idleUs > 0 ? idleUs : defaultSequenceIdleUs) / 1e3,
    controls: sequenceControls(config),
    state,
  })
}

/** Batching that nobody asked for stays only where it pays. Where sizes take what was measured of them, that is weighed for each run. */
async function settleBatching(
  opened: OpenedModel,
  instances: ModelInstances,
  { batching, log }: ScheduledModelOptions,
): Promise<OpenedModel> {
  const isAutomatic = opened.batchingIsAutomatic === true && opened.config.dynamic_batching !== undefined
  if (!isAutomatic || instances.sizes !== undefined) return opened
  const measure = () => batchingPays(opened.config, (batch) => instances.run(batch))
  const probe = await (batching === undefined ? measure() : batching(opened.config, measure))
  if (probe.pays) return opened
  log.info(
    { model: opened.config.name, ...probe.figures },
    'batches do not pay for this model, automatic batching left off',
  )
  const { dynamic_batching: _, ...config } = opened.config
  return withConfig(opened, config)
}

function withConfig(opened: OpenedModel, config: ModelConfig): OpenedModel {
  return {
    config,
    platform: opened.platform,
    inputs: opened.inputs,
    outputs: opened.outputs,
    start: (index, onBegan) => opened.start(index, onBegan),
    ...(opened.isReplaceable === undefined ? {} : { isReplaceable: opened.isReplaceable }),
    ...(opened.onGpu === undefined ? {} : { onGpu: () => opened.onGpu?.() ?? false }),
    ...(opened.gpuMemory === undefined ? {} : { gpuMemory: () => opened.gpuMemory?.() ?? [] }),
    close: () => opened.close(),
  }
}
