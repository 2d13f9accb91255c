import { join } from 'node:path'
import type { InferenceConfig } from '../config/inference.js'
import { acceleratedProviders, nativeOptions } from '../backends/onnxruntime/provider-options.js'
import { type DeviceKind, deviceOf, gpuProvidersOf, takesDevice } from '../backends/onnxruntime/providers.js'
import { graphOptimization } from '../repository/model-config.js'
import { InstanceGroup } from '../runtime/instance-group.js'
import { tellSizes, warnOfColdSizes } from '../runtime/batch-sizes.js'
import { slowRunTeller } from '../runtime/slow-runs.js'
import { timers } from '../runtime/scheduler-clock.js'
import { StatisticsRecorder } from '../runtime/statistics-recorder.js'
import { warmUpRequests } from '../runtime/warm-up.js'
import { type Repositories, repositoryWith } from '../repository/repository-files.js'
import { failureIn, failuresOf, noteText, warnOfSizes } from '../backends/onnxruntime/provider-notes.js'
import { type ModelUses, ProviderUses } from '../backends/onnxruntime/provider-uses.js'
import { sessionSettings } from '../backends/onnxruntime/session-settings.js'
import { entryPath } from '../lifecycle/entry.js'
import type { Log } from '../lifecycle/log.js'
import type { CameraDetector, DetectorListener } from '../detector/camera-detector.js'
import { type CameraModel, findCameraModel } from './camera-model.js'
import { planCameraModel, type PlannedDetector } from './check-camera-model.js'
import { type Choice, Float16Choice } from './float16-choice.js'
import { ClassDoubts } from '../detector/class-doubts.js'
import { type DetectorPlan, isSizedByCameras } from '../detector/detector-plan.js'
import { DetectorInstance } from '../detector/detector-instance.js'
import type {
  DetectorAnswer,
  DetectorCandidate,
  DetectorJob,
  DetectorLoad,
  DetectorReady,
} from '../detector/detector-protocol.js'
import { type CameraShapes, noCameraShapes, sizeText } from '../detector/input-size.js'
import { gpuBatchSizes, type InstanceSettings, instanceSettings } from '../detector/instance-settings.js'
import { detectionLimits } from '../detector/detection-head/head-parameters.js'
import type { Float16Findings } from '../detector/float16-findings.js'
import type { DetectionLimits } from '../detector/frame-reader.js'
import type { LaterSteps } from '../detector/later-steps.js'
import { ModelConfigError } from '../repository/errors.js'
import { RunHungError } from '../runtime/errors.js'
import { type CameraGraphHost, hasOtherSteps, openCameraGraph, type StepModels } from './open-camera-graph.js'
import { createStepwiseDetector } from './stepwise-detector.js'
import { ScheduledDetector } from '../detector/scheduled-detector.js'

export type CameraDetectorOptions = Readonly<{
  repositories: Repositories
  /** An ensemble of the repository, or a detector model. */
  ensemble: string
  inference: InferenceConfig
  /** GPU for the providers that take one by its number; 0 without it. */
  deviceId?: number
  /** Asked once, where theirs decides the size of the input. Absent: it is the one of the model's export. */
  cameraShapes?: () => Promise<CameraShapes>
  listener: DetectorListener
  log: Log
  /** Worker to run instead of the detector's own; it must speak the same protocol. */
  workerEntry?: string
  /** Knows where models run; absent: the log alone is told. */
  uses?: ProviderUses
  /** What was measured of models in float16; absent: what this user's temporary files keep. */
  findings?: Float16Findings
  /** Runs the steps that are not fused; absent: an ensemble must have none. */
  steps?: StepModels
  /** What counts as a detection, before what the parameters of the model say; a head that is a step of its own keeps those. */
  limits?: Partial<DetectionLimits>
}>

/**
 * Behind a run of this length the next batch is handed over beforehand, so that the instance goes on without a round trip to this loop.
 * Behind longer ones the trip weighs nothing, and a frame that is taken so early may be out of date when its run begins.
 */
const aheadUpToMs = 30

/**
 * Finds the model, works out how to use it, starts its instances, and resolves when all of them have run once;
 * on a GPU when the first of them has.
 *
 * Frames come in the format of `info.format`; their buffers go to the listener with each outcome. A buffer whose run failed is
 * lost, and the frame's is then empty.
 *
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError, HeadUnknownError,
 * ProviderUnavailableError
 */
export async function createCameraDetector(options: CameraDetectorOptions): Promise<CameraDetector> {
  const { inference, deviceId = 0, listener, log } = options
  const model = findCameraModel(options.repositories, options.ensemble)
  const { detector: own, ensemble } = model
  if (own === undefined && ensemble !== undefined)
    return createStepwiseDetector({ ...model, ensemble }, graphHost(options), listener)
  if (own === undefined) throw new TypeError('a model without an ensemble has a detector')
  const float16 = new Float16Choice(await choicesOf(model, options), inference, deviceId, options.findings)
  const choices = await float16.ordered()
  const warnings = new Set([...model.warnings, ...choices.flatMap(({ plan }) => plan.notes)])
  for (const note of warnings) log.warn({ model: own.name }, note)

  const settingsFor = ({ candidate, provider }: DetectorReady) => {
    const { detector, plan } = choices[candidate]!
    return instanceSettings(deviceOf(provider), inference, detector, plan.maxBatchSize, deviceId)
  }
  let instanceFreed: () => void = () => undefined
  let firstReady: DetectorReady | undefined
  let use: ModelUses | undefined
  let sizesChanged: () => void = () => undefined
  const name = `${model.name}:${model.version}`
  const entry = options.workerEntry ?? entryPath(import.meta.url, '../detector/detector-worker.js')
  const instances = new InstanceGroup<DetectorJob, DetectorAnswer>({
    name,
    count: () => settingsFor(firstReady!).instances,
    start: async (index) => {
      // Instances after the first run where that one does, and as it does.
      const tried = firstReady && [asItRuns(choices[firstReady.candidate]!, firstReady)]
      const load = {
        ...loadOptions(model, tried ?? choices, inference, deviceId),
        ...options.limits,
        // Its sessions are as those of the others.
        measuresMemory: firstReady === undefined,
      }
      const starting = DetectorInstance.start(`${name}#${index}`, entry, load)
      const { instance, ready } = await starting.catch((error: unknown) => {
        const reason = failureIn(error)
        if (firstReady && reason !== undefined) use?.failed(index, [firstReady.provider], deviceId, reason)
        throw error
      })
      firstReady ??= ready
      const { detector } = choices[firstReady.candidate]!
      use ??= (options.uses ?? new ProviderUses(log)).open(detector.name, detector.version)
      // Only the first has tried what comes before its provider.
      use.started(index, { provider: ready.provider, notes: firstReady.notes }, deviceId)
      return instance
    },
    onSizes: () => sizesChanged(),
    onSizesLeftOut: (leftOut, error) => warnOfColdSizes(log, own.name, leftOut, error),
    // Each plans its convolutions for seconds, while the first one can run.
    othersFollow: () => deviceOf(firstReady!.provider) === 'gpu',
    clock: timers,
    log,
    onEnd: (error) => listener.instanceExited(error),
    onIdle: () => instanceFreed(),
    aheadUpToMs,
    runTimeoutMs: inference.runTimeoutMs,
    onHung: (instance) => listener.hung(new RunHungError(instance, inference.runTimeoutMs)),
  })
  const recorders = choices.map(
    ({ detector: { name: model, version, config } }) =>
      new StatisticsRecorder(model, version, config.metric_tags),
  )
  await instances.start()
  const first = firstReady!
  const asked = choices[first.candidate]!
  const choice = asItRuns(asked, first)
  if (first.sizesLeftOut !== undefined) warnOfSizes(log, own.name, first.sizesLeftOut)
  if (first.misfit !== undefined) warnOfMisfit(log, asked, choice, first.misfit)
  const later = await laterSteps(model, choice.plan, options).catch(async (error: unknown) => {
    await instances.stop(1_000)
    throw error
  })
  const recorder = recorders[first.candidate]!
  recorder.onSlowRun = slowRunTeller(choice.detector.name, () => deviceOf(first.provider) === 'gpu', log)
  recorder.recordLoaded()
  const settings = settingsFor(first)
  const { plan, detector: running } = choice
  const detector = new ScheduledDetector(
    {
      model: { name: model.name, version: model.version },
      detector: { name: running.name, version: running.version },
      labels: plan.labels,
      format: { input: plan.input.size, align: plan.input.align },
      inputFrom: plan.sizeFrom,
      ...(first.misfit === undefined &&
        asked.plan.exportedSize && { exportedInput: asked.plan.exportedSize }),
      head: plan.head.kind,
      provider: first.provider,
      ...(takesDevice(first.provider) && { deviceId }),
      providerNotes: first.notes.map(noteText),
      providerFailures: failuresOf(first.notes),
      instances: settings.instances,
      maxBatchSize: settings.maxBatchSize,
      ...(instances.sizes && { sizes: instances.sizes }),
      ...float16.told(running, first.float16),
    },
    settings.maxQueueDelayMs,
    instances,
    listener,
    new ClassDoubts(
      own.name,
      own.labelsFrom,
      plan.head.columns === undefined ? (plan.head.options?.firstClass ?? 0) : 0,
      log,
    ),
    recorder,
    later,
  )
  instanceFreed = () => detector.pump()
  logReady(log, model, choice, first, settings)
  await float16.keep(first.float16, log)
  sizesChanged = () => {
    const { sizes } = instances
    if (sizes === undefined) return
    detector.useSizes(sizes)
    recorder.sizes = sizes.warm
    if (sizes.toCome.length === 0) tellSizes(log, running.name, sizes.warm)
  }
  sizesChanged()
  instances.warmSizes()
  return detector
}

/** Steps behind the head, with the models they run; they end with the detector. @throws why they cannot be run */
async function laterSteps(
  { name, version, ensemble }: CameraModel,
  plan: DetectorPlan,
  options: CameraDetectorOptions,
): Promise<LaterSteps | undefined> {
  if (ensemble === undefined || !hasOtherSteps(ensemble)) return undefined
  const host = graphHost(options)
  const { graph } = await openCameraGraph({ name, version, ensemble }, plan, host)
  return {
    run: (frame) => graph.run(frame),
    takeFailures: () => graph.takeFailures(),
    stop: async (drainMs) => {
      await graph.stop(drainMs)
      await host.models.stop(drainMs)
    },
  }
}

/** @throws ModelConfigError where nothing runs steps */
function graphHost(options: CameraDetectorOptions): CameraGraphHost {
  const { steps, inference, log, ensemble } = options
  const { stepTimeoutMs, runTimeoutMs } = inference
  const limits = { ...inference, ...options.limits }
  if (steps !== undefined) return { models: steps, stepTimeoutMs, runTimeoutMs, limits, log }
  throw new ModelConfigError(
    `ensemble "${ensemble}" has steps that nothing runs here`,
    'Run it with `gantry serve`.',
  )
}

/** In the order of the providers: the model for GPUs on those, the ensemble's own on the CPU. */
async function choicesOf(
  model: CameraModel,
  { inference: { providers }, repositories, cameraShapes }: CameraDetectorOptions,
): Promise<readonly Choice[]> {
  const { detector, gpuDetector, float16Detector } = model
  const wantsShapes = [detector, gpuDetector, float16Detector].some((each) => each && isSizedByCameras(each))
  const shapes = wantsShapes ? await cameraShapes?.() : noCameraShapes
  const planned = planCameraModel(model, shapes)
  const choiceOf = async (chosen: PlannedDetector) => ({
    ...chosen,
    isFloat16: chosen === planned?.inFloat16,
    warmUps: await warmUpRequests(
      chosen.detector.config,
      join(repositoryWith(repositories, chosen.detector.name), chosen.detector.name),
    ),
  })
  if (planned === undefined) throw new TypeError('a model whose detector is a step of its own has no choices')
  const own = await choiceOf(planned.own)
  if (planned.onGpu === undefined && planned.inFloat16 === undefined)
    return [{ ...own, providers: acceleratedProviders(providers, own.detector.config) }]
  const forGpu = planned.onGpu === undefined ? own : await choiceOf(planned.onGpu)
  const inFloat16 = planned.inFloat16 === undefined ? [] : [await choiceOf(planned.inFloat16)]
  const onGpu = gpuProvidersOf(providers)
  return [
    ...[forGpu, ...inFloat16].map((choice) => ({
      ...choice,
      providers: acceleratedProviders(onGpu, choice.detector.config),
    })),
    { ...own, providers: providers.slice(onGpu.length) },
  ].filter((choice) => choice.providers.length > 0)
}

/** With the size that the first run decided, and no other to try. */
function asItRuns(choice: Choice, { provider, misfit }: DetectorReady): Choice {
  const { exportedSize, ...plan } = choice.plan
  const providers = [provider]
  if (misfit === undefined || exportedSize === undefined) return { ...choice, plan, providers }
  const { input } = plan
  const sizeFrom = `its export, as it does not run at ${sizeText(input.size)}: ${misfit}`
  return { ...choice, providers, plan: { ...plan, sizeFrom, input: { ...input, size: exportedSize } } }
}

function warnOfMisfit(log: Log, asked: Choice, running: Choice, reason: string): void {
  const size = sizeText(running.plan.input.size)
  log.warn(
    { model: running.detector.name, reason },
    `gantry.input_size is "rect", but the model does not run at ${sizeText(asked.plan.input.size)}: it runs at ${size}, as it was exported; set gantry.input_size to ${size}`,
  )
}

function loadOptions(
  { head }: CameraModel,
  choices: readonly Choice[],
  inference: InferenceConfig,
  deviceId: number,
): Omit<DetectorLoad, 'measuresMemory'> {
  const candidates = choices.map(({ isFloat16, detector, plan, warmUps, providers }): DetectorCandidate => {
    const batchOn = (device: DeviceKind) =>
      instanceSettings(device, inference, detector, plan.maxBatchSize, deviceId).maxBatchSize
    return {
      isFloat16,
      session: {
        path: detector.path,
        providers,
        deviceId,
        graphOptimization: graphOptimization(detector.config),
        ...sessionSettings(detector.config, inference.intraOpThreads),
        ...nativeOptions(inference, detector.config),
      },
      input: plan.input,
      ...(plan.exportedSize && { exportedSize: plan.exportedSize }),
      head: plan.head,
      topRows: plan.topRows,
      warmUps,
      batched: (detector.config.max_batch_size ?? 0) > 0,
      maxBatchSize: { cpu: batchOn('cpu'), gpu: batchOn('gpu') },
      batchSizes: gpuBatchSizes(inference, detector, plan.maxBatchSize),
    }
  })
  return { candidates, ...detectionLimits(head.name, head.config, inference) }
}

function logReady(
  log: Log,
  model: CameraModel,
  { detector, plan }: Choice,
  ready: DetectorReady,
  settings: InstanceSettings,
): void {
  log.info(
    {
      model: model.name,
      detector: `${detector.name}:${detector.version}`,
      head: plan.head.kind,
      input: `${plan.input.layout} ${plan.input.size.widthPx}x${plan.input.size.heightPx}`,
      provider: ready.provider,
      ...settings,
      ...(ready.headRows !== undefined && { headRows: ready.headRows }),
      loadMs: Math.round(ready.loadMs),
      warmUpMs: Math.round(ready.warmUpMs),
    },
    'detector is ready',
  )
}
