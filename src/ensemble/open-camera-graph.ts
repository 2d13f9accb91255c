import type { Service } from '../lifecycle/service.js'
import { limitParameters } from '../detector/detection-head/head-parameters.js'
import type { DetectionLimits } from '../detector/frame-reader.js'
import type { LetterboxPlan } from '../detector/letterbox/letterbox-parameters.js'
import type { Log } from '../lifecycle/log.js'
import { ModelConfigError } from '../repository/errors.js'
import type { ModelConfig } from '../repository/model-config.js'
import { outputLabels } from '../repository/output-labels.js'
import { StepBinder } from './bind-steps.js'
import { isBuiltInStep } from './built-in-steps.js'
import { CameraGraph } from './camera-graph.js'
import type { CameraModel } from './camera-model.js'
import type { CameraSteps } from './camera-steps.js'
import { CameraTensors } from './camera-tensors.js'
import { createEnsembleModel, type EnsembleHost } from './create-ensemble-model.js'
import type { ResolvedStep } from './ensemble-graph.js'

/** Runs the models of steps that cameras do not run in one go with the detector. */
export interface StepModels extends Service {
  /** Loads models of the repository, with what they run. @throws GantryError why one of them cannot be loaded */
  load(names: readonly string[]): Promise<EnsembleHost>
  /** Idempotent, never rejects. */
  stop(drainMs: number): Promise<void>
}

export type CameraGraphHost = Readonly<{
  models: StepModels
  stepTimeoutMs: number
  runTimeoutMs: number
  /** What counts as a detection where the model does not say it. */
  limits: DetectionLimits
  log: Log
}>

export type OpenedGraph = Readonly<{
  graph: CameraGraph
  /** What frames must be like. */
  letterbox: LetterboxPlan
  /** Names of the classes of the published boxes. */
  labels: readonly string[]
}>

type Ensemble = NonNullable<CameraModel['ensemble']>
type NamedEnsemble = Readonly<{ name: string; version: string; ensemble: Ensemble }>

/** Whether an ensemble has steps beside the fused ones whose outputs anybody gets. */
export function hasOtherSteps({ steps, config }: Ensemble): boolean {
  return wantedOutputs(steps, config).length > 0
}

/**
 * Loads what the steps of an ensemble run, and puts them together as for API clients. When that fails, what was loaded is closed.
 *
 * @param fused - what the detector takes, and the names of its classes, where letterbox, detector and head are fused.
 * @throws ModelConfigError, ModelInvalidError, and why a model cannot be loaded
 */
export async function openCameraGraph(
  model: NamedEnsemble,
  fused: Readonly<{ input: LetterboxPlan; labels: readonly string[] }> | undefined,
  host: CameraGraphHost,
): Promise<OpenedGraph> {
  try {
    return await opened(model, fused, host)
  } catch (error) {
    await host.models.stop(1_000)
    throw error
  }
}

async function opened(
  { name, version, ensemble }: NamedEnsemble,
  fused: Readonly<{ input: LetterboxPlan; labels: readonly string[] }> | undefined,
  { models, log, stepTimeoutMs, runTimeoutMs, limits }: CameraGraphHost,
): Promise<OpenedGraph> {
  const { steps, config } = ensemble
  const host = await models.load(namesOf(steps.others))
  const letterbox = fused?.input ?? boundLetterbox(name, steps, host)
  const tensors = new CameraTensors(letterbox, steps.brought, config)
  const read = new Set(steps.others.flatMap(({ step }) => Object.values(step.input_map)))
  const own: ModelConfig = {
    ...config,
    input: tensors.inputs((tensor) => read.has(tensor)),
    output: wantedOutputs(steps, config),
    ensemble_scheduling: { step: steps.others.map(({ step }) => step) },
    parameters: withoutGpuModel(config),
  }
  const boxInputs = [...steps.brought].flatMap(([tensor, what]) => (what === 'detections' ? [tensor] : []))
  const model = await createEnsembleModel(
    {
      name,
      version,
      config: own,
      versionDir: '',
      labels: outputLabels(config, ensemble.dir),
      boxInputs,
      parametersOf: (index, ofFolder) => ({
        ...asParameters(limits),
        ...(ofFolder ?? steps.others[index]?.ensemble.config.parameters),
      }),
    },
    host,
  )
  const named = model.labels(steps.detections)
  const labels = named.length > 0 ? named : (fused?.labels ?? [])
  const graph = new CameraGraph({
    model,
    tensors,
    detections: steps.detections,
    labels,
    stepTimeoutMs,
    runTimeoutMs,
    log,
  })
  return { graph, letterbox, labels }
}

/** Folders of the steps; those that are built in have none. */
function namesOf(steps: readonly ResolvedStep[]): readonly string[] {
  return [...new Set(steps.filter(({ config }) => config !== undefined).map(({ step }) => step.model_name))]
}

function wantedOutputs({ others }: CameraSteps, { output }: ModelConfig): ModelConfig['output'] {
  const written = new Set(others.flatMap(({ step }) => Object.values(step.output_map)))
  return output.filter(({ name }) => written.has(name))
}

/** What the detector behind it takes, which is known once that is loaded. */
function boundLetterbox(
  ensemble: string,
  { letterbox, others }: CameraSteps,
  host: EnsembleHost,
): LetterboxPlan {
  const places = [letterbox, ...others].map(({ title, step, backend }) => ({
    title,
    step,
    model: isBuiltInStep(backend) ? undefined : host.find(step.model_name, -1),
  }))
  const [first] = places
  if (first !== undefined) return new StepBinder(ensemble, places).letterbox(first)
  throw new ModelConfigError(`ensemble "${ensemble}" has no letterbox`, 'Begin with a step "letterbox".')
}

function asParameters(limits: DetectionLimits): ModelConfig['parameters'] {
  const { scoreThreshold, iouThreshold, maxDetections } = limits
  const values = [scoreThreshold, iouThreshold, maxDetections]
  return Object.fromEntries(
    limitParameters.map((key, index) => [key, { string_value: String(values[index]) }]),
  )
}

function withoutGpuModel({ parameters }: ModelConfig): ModelConfig['parameters'] {
  const { 'gantry.gpu_model': _, ...others } = parameters
  return others
}
