import type { InferenceConfig } from '../config/inference.js'
import { type DeviceKind, deviceOf } from '../inference/providers.js'
import { graphOptimization } from '../inference/graph-optimization.js'
import { InstancePool } from '../inference/instance-pool.js'
import { failuresOf, logNotes, noteText } from '../inference/provider-notes.js'
import { entryPath } from '../lifecycle/entry.js'
import type { Log } from '../lifecycle/log.js'
import type { CameraDetector, DetectorListener } from './camera-detector.js'
import { type CameraModel, findCameraModel } from './camera-model.js'
import { ClassDoubts } from './class-doubts.js'
import { type DetectorPlan, planDetector } from './detector-plan.js'
import type { DetectorAnswer, DetectorJob, DetectorLoad, DetectorReady } from './detector-protocol.js'
import { type InstanceSettings, instanceSettings } from './instance-settings.js'
import { ScheduledDetector } from './scheduled-detector.js'

export type CameraDetectorOptions = Readonly<{
  repositoryDir: string
  /** An ensemble of the repository, or a detector model. */
  ensemble: string
  inference: InferenceConfig
  listener: DetectorListener
  log: Log
  /** Worker to run instead of the detector's own; it must speak the same protocol. */
  workerEntry?: string
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
  const model = findCameraModel(options.repositoryDir, options.ensemble)
  const plan = planDetector(model.detector)
  for (const note of [...model.warnings, ...plan.notes]) log.warn({ model: model.detector.name }, note)

  const settingsFor = (device: DeviceKind) =>
    instanceSettings(device, inference, model.detector, plan.maxBatchSize)
  let instanceFreed: () => void = () => undefined
  const pool = new InstancePool<DetectorLoad, DetectorReady, DetectorJob, DetectorAnswer>({
    name: `${model.detector.name}:${model.detector.version}`,
    entry: options.workerEntry ?? entryPath(import.meta.url, './detector-worker.js'),
    load: (first) => loadOptions(model, plan, inference, settingsFor, first),
    count: (first) => settingsFor(deviceOf(first.provider)).instances,
    log,
    onExit: (error) => listener.instanceExited(error),
    onIdle: () => instanceFreed(),
    aheadUpToMs,
    runTimeoutMs: inference.runTimeoutMs,
    onHung: (error) => listener.hung(error),
  })
  const first = await pool.start()
  const settings = settingsFor(deviceOf(first.provider))
  const detector = new ScheduledDetector(
    {
      model: { name: model.name, version: model.version },
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
    pool,
    listener,
    new ClassDoubts(
      model.detector.name,
      model.detector.labelsFrom,
      plan.head.columns === undefined ? (plan.head.options?.firstClass ?? 0) : 0,
      log,
    ),
  )
  instanceFreed = () => detector.pump()
  logReady(log, model, plan, first, settings)
  return detector
}

function loadOptions(
  model: CameraModel,
  plan: DetectorPlan,
  inference: InferenceConfig,
  settingsFor: (device: DeviceKind) => InstanceSettings,
  first: DetectorReady | undefined,
): DetectorLoad {
  return {
    session: {
      path: model.detector.path,
      providers: first === undefined ? inference.providers : [first.provider],
      deviceId: inference.deviceId,
      intraOpThreads: inference.intraOpThreads,
      graphOptimization: graphOptimization(model.detector.config),
    },
    input: plan.input,
    head: plan.head,
    scoreThreshold: inference.scoreThreshold,
    iouThreshold: inference.iouThreshold,
    maxDetections: inference.maxDetections,
    maxBatchSize: { cpu: settingsFor('cpu').maxBatchSize, gpu: settingsFor('gpu').maxBatchSize },
  }
}

function logReady(
  log: Log,
  model: CameraModel,
  plan: DetectorPlan,
  ready: DetectorReady,
  settings: InstanceSettings,
): void {
  logNotes(log, model.name, ready)
  log.info(
    {
      model: model.name,
      detector: `${model.detector.name}:${model.detector.version}`,
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
