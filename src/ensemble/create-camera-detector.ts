import { join } from 'node:path'
import type { ExecutionProvider, InferenceConfig } from '../config/inference.js'
import { type DeviceKind, deviceOf, gpuProvidersOf } from '../backends/onnxruntime/providers.js'
import { graphOptimization } from '../repository/model-config.js'
import { InstanceGroup } from '../runtime/instance-group.js'
import { timers } from '../runtime/scheduler-clock.js'
import { StatisticsRecorder } from '../runtime/statistics-recorder.js'
import { type WarmUp, warmUpRequests } from '../runtime/warm-up.js'
import type { OnnxModel } from '../repository/onnx-model.js'
import { type Repositories, repositoryWith } from '../repository/repository-files.js'
import { failuresOf, logNotes, noteText } from '../backends/onnxruntime/provider-notes.js'
import { sessionConfig } from '../backends/onnxruntime/session-settings.js'
import { entryPath } from '../lifecycle/entry.js'
import type { Log } from '../lifecycle/log.js'
import type { CameraDetector, DetectorListener } from '../detector/camera-detector.js'
import { type CameraModel, findCameraModel } from './camera-model.js'
import { ClassDoubts } from '../detector/class-doubts.js'
import { type DetectorPlan, planDetector } from '../detector/detector-plan.js'
import { DetectorInstance } from '../detector/detector-instance.js'
import type {
  DetectorAnswer,
  DetectorCandidate,
  DetectorJob,
  DetectorLoad,
  DetectorReady,
} from '../detector/detector-protocol.js'
import { type InstanceSettings, instanceSettings } from '../detector/instance-settings.js'
import { detectionLimits } from '../detector/detection-head/head-parameters.js'
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
  listener: DetectorListener
  log: Log
  /** Worker to run instead of the detector's own; it must speak the same protocol. */
  workerEntry?: string
  /** Runs the steps that are not fused; absent: an ensemble must have none. */
  steps?: StepModels
}>

/**
 * Behind a run of this length the next batch is handed over beforehand, so that the instance goes on without a round trip to this loop.
 * Behind longer ones the trip weighs nothing, and a frame that is taken so early may be out of date when its run begins.
 */
const aheadUpToMs = 30

/**
 * Finds the model, works out how to use it, starts its instances, and resolves when all of them have run once.
 *
 * Frames come in the format of `info.format`; their buffers go to the listener with each outcome. A buffer whose run failed is
 * lost, and the frame's is then empty.
 *
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError, HeadUnknownError,
 * ProviderUnavailableError
 */
export async function createCameraDetector(options: CameraDetectorOptions): Promise<CameraDetector> {
  const { inference, listener, log } = options
  const model = findCameraModel(options.repositories, options.ensemble)
  const { detector: own, ensemble } = model
  if (own === undefined && ensemble !== undefined)
    return createStepwiseDetector({ ...model, ensemble }, graphHost(options), listener)
  if (own === undefined) throw new TypeError('a model without an ensemble has a detector')
  const choices = await choicesOf(own, model, inference, options.repositories)
  const warnings = new Set([...model.warnings, ...choices.flatMap(({ plan }) => plan.notes)])
  for (const note of warnings) log.warn({ model: own.name }, note)

  const settingsFor = ({ candidate, provider }: DetectorReady) => {
    const { detector, plan } = choices[candidate]!
    return instanceSettings(deviceOf(provider), inference, detector, plan.maxBatchSize)
  }
  let instanceFreed: () => void = () => undefined
  let firstReady: DetectorReady | undefined
  const name = `${model.name}:${model.version}`
  const entry = options.workerEntry ?? entryPath(import.meta.url, '../detector/detector-worker.js')
  const instances = new InstanceGroup<DetectorJob, DetectorAnswer>({
    name,
    count: () => settingsFor(firstReady!).instances,
    start: async (index) => {
      const load = loadOptions(model, choices, inference, firstReady)
      const { instance, ready } = await DetectorInstance.start(`${name}#${index}`, entry, load)
      firstReady ??= ready
      return instance
    },
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
  const later = await laterSteps(model, choices[first.candidate]!.plan, options).catch(
    async (error: unknown) => {
      await instances.stop(1_000)
      throw error
    },
  )
  const recorder = recorders[first.candidate]!
  recorder.recordLoaded()
  const settings = settingsFor(first)
  const { plan, detector: running } = choices[first.candidate]!
  const detector = new ScheduledDetector(
    {
      model: { name: model.name, version: model.version },
      detector: { name: running.name, version: running.version },
      labels: plan.labels,
      format: { input: plan.input.size, align: plan.input.align },
      head: plan.head.kind,
      provider: first.provider,
      providerNotes: first.notes.map(noteText),
      providerFailures: failuresOf(first.notes),
      instances: settings.instances,
      maxBatchSize: settings.maxBatchSize,
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
  logReady(log, model, choices[first.candidate]!, first, settings)
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
function graphHost({ steps, inference, log, ensemble }: CameraDetectorOptions): CameraGraphHost {
  const { stepTimeoutMs, runTimeoutMs } = inference
  if (steps !== undefined) return { models: steps, stepTimeoutMs, runTimeoutMs, limits: inference, log }
  throw new ModelConfigError(
    `ensemble "${ensemble}" has steps that nothing runs here`,
    'Run it with `gantry serve`.',
  )
}

/** A detector and where it is tried. */
type Choice = Readonly<{
  detector: OnnxModel
  plan: DetectorPlan
  warmUps: readonly WarmUp[]
  providers: readonly ExecutionProvider[]
}>

/** In the order of the providers: the model for GPUs on those, the ensemble's own on the CPU. */
async function choicesOf(
  detector: OnnxModel,
  { gpuDetector }: CameraModel,
  { providers }: InferenceConfig,
  repositories: Repositories,
): Promise<readonly Choice[]> {
  const choiceOf = async (chosen: OnnxModel) => ({
    detector: chosen,
    plan: planDetector(chosen),
    warmUps: await warmUpRequests(
      chosen.config,
      join(repositoryWith(repositories, chosen.name), chosen.name),
    ),
  })
  const own = await choiceOf(detector)
  if (gpuDetector === undefined) return [{ ...own, providers }]
  const forGpu = await choiceOf(gpuDetector)
  const onGpu = gpuProvidersOf(providers)
  return [
    { ...forGpu, providers: onGpu },
    { ...own, providers: providers.slice(onGpu.length) },
  ].filter((choice) => choice.providers.length > 0)
}

function loadOptions(
  { head }: CameraModel,
  choices: readonly Choice[],
  inference: InferenceConfig,
  first: DetectorReady | undefined,
): DetectorLoad {
  const candidates = choices.map(({ detector, plan, warmUps, providers }): DetectorCandidate => {
    const batchOn = (device: DeviceKind) =>
      instanceSettings(device, inference, detector, plan.maxBatchSize).maxBatchSize
    return {
      session: {
        path: detector.path,
        providers,
        deviceId: inference.deviceId,
        intraOpThreads: inference.intraOpThreads,
        graphOptimization: graphOptimization(detector.config),
        sessionConfig: sessionConfig(detector.config),
      },
      input: plan.input,
      head: plan.head,
      warmUps,
      batched: (detector.config.max_batch_size ?? 0) > 0,
      maxBatchSize: { cpu: batchOn('cpu'), gpu: batchOn('gpu') },
    }
  })
  return {
    candidates: first === undefined ? candidates : [onlyOn(candidates[first.candidate]!, first.provider)],
    ...detectionLimits(head.name, head.config, inference),
  }
}

/** Instances after the first run where that one does. */
function onlyOn(candidate: DetectorCandidate, provider: ExecutionProvider): DetectorCandidate {
  return { ...candidate, session: { ...candidate.session, providers: [provider] } }
}

function logReady(
  log: Log,
  model: CameraModel,
  { detector, plan }: Choice,
  ready: DetectorReady,
  settings: InstanceSettings,
): void {
  logNotes(log, model.name, ready)
  log.info(
    {
      model: model.name,
      detector: `${detector.name}:${detector.version}`,
      head: plan.head.kind,
      input: `${plan.input.layout} ${plan.input.size.widthPx}x${plan.input.size.heightPx}`,
      provider: ready.provider,
      ...settings,
      loadMs: Math.round(ready.loadMs),
      warmUpMs: Math.round(ready.warmUpMs),
    },
    'detector is ready',
  )
}
