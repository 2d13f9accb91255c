import { ClassDoubts } from '../detector/class-doubts.js'
import type { CameraDetector, DetectorListener } from '../detector/camera-detector.js'
import type { DetectorAnswer, DetectorJob } from '../detector/detector-protocol.js'
import { type FrameRunner, ScheduledDetector } from '../detector/scheduled-detector.js'
import type { EnsembleStep } from '../repository/model-config.js'
import type { BackendName } from '../repository/supported-config.js'
import { nowMs } from '../lifecycle/clock.js'
import type { CameraGraph } from './camera-graph.js'
import type { CameraModel } from './camera-model.js'
import type { CameraSteps } from './camera-steps.js'
import { type CameraGraphHost, openCameraGraph } from './open-camera-graph.js'

/** Frames that are in the steps at once: those of other cameras wait, and newer ones take their place. */
const mostAtOnce = 16

/** Runs the steps for each frame by itself; what they run batches over the cameras. */
class StepRunner implements FrameRunner {
  #running = 0
  readonly ahead = 0
  onIdle: () => void = () => undefined

  constructor(
    readonly graph: CameraGraph,
    readonly models: CameraGraphHost['models'],
  ) {}

  get idle(): number {
    return mostAtOnce - this.#running
  }

  async run({ frames }: DetectorJob): Promise<DetectorAnswer> {
    const startedMs = nowMs()
    this.#running += 1
    try {
      const found = await Promise.all(
        frames.map(async ({ rgbHwc, geometry }) => ({
          rgbHwc,
          ...(await this.graph.detect({ rgbHwc, geometry })),
          postprocessMs: 0,
          belowFirst: 0,
          unsound: 0,
          strange: undefined,
        })),
      )
      return { startedMs, inferMs: nowMs() - startedMs, inputMs: 0, frames: found }
    } finally {
      this.#running -= 1
      queueMicrotask(this.onIdle)
    }
  }

  takeFailures(): ReturnType<CameraGraph['takeFailures']> {
    return this.graph.takeFailures()
  }

  async stop(drainMs: number): Promise<void> {
    await this.graph.stop(drainMs)
    await this.models.stop(drainMs)
  }
}

/** A detector that is a step like any other: on another server, in code, or read by more than its head. */
export async function createStepwiseDetector(
  model: CameraModel & Readonly<{ ensemble: NonNullable<CameraModel['ensemble']> }>,
  host: CameraGraphHost,
  listener: DetectorListener,
): Promise<CameraDetector> {
  const { name, version, ensemble } = model
  const { graph, letterbox, labels } = await openCameraGraph(model, undefined, host)
  const runner = new StepRunner(graph, host.models)
  const { step, backend } = detectorStep(ensemble.steps)
  const detector = new ScheduledDetector(
    {
      model: { name, version },
      detector: { name: step.model_name, version: '' },
      labels,
      format: { input: letterbox.size, align: letterbox.align },
      inputFrom: 'the model behind the letterbox',
      head: 'steps',
      provider: backend,
      providerNotes: [],
      providerFailures: [],
      instances: mostAtOnce,
      maxBatchSize: 1,
    },
    0,
    runner,
    listener,
    new ClassDoubts(step.model_name, 'its labels', 0, host.log),
  )
  runner.onIdle = () => detector.pump()
  host.log.info(
    { model: name, detector: step.model_name, backend, input: letterbox.size, labels: labels.length },
    'detector is ready, as a step of its own',
  )
  return detector
}

/** The one that takes the pixels. */
function detectorStep({
  letterbox,
  others,
}: CameraSteps): Readonly<{ step: EnsembleStep; backend: BackendName }> {
  const { pixels } = letterbox.step.output_map
  const detector = others.find(({ step }) => Object.values(step.input_map).includes(pixels ?? ''))
  return detector ?? letterbox
}
