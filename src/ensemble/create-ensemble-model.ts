import { isBuiltInStep, type BuiltInStepName } from './built-in-steps.js'
import { checkSameLabels, gpuModelOf, withGpuModel } from '../repository/gpu-model.js'
import {
  emptyModelConfig,
  type EnsembleStep,
  type ModelConfig,
  parameterOf,
} from '../repository/model-config.js'
import type { Log } from '../lifecycle/log.js'
import type { Backend, BackendContext, OpenedModel } from '../runtime/backend.js'
import { CropBackend } from '../detector/crop/crop-backend.js'
import { DetectionHeadBackend } from '../detector/detection-head/detection-head-backend.js'
import { ImageDecodeBackend } from '../backends/image-decode/image-decode-backend.js'
import { LetterboxBackend } from '../detector/letterbox/letterbox-backend.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import type { SizePx } from '../vision/letterbox.js'
import { StatisticsRecorder } from '../runtime/statistics-recorder.js'
import { type BindingStep, StepBinder } from './bind-steps.js'
import { EnsembleModel } from './ensemble-model.js'
import { planEnsemble } from './ensemble-plan.js'
import { type FindModel, missingStep, ownStep, sharedStep, type StepModel } from './step-model.js'

/** An ensemble of the repository. */
export type EnsembleDefinition = Readonly<{
  name: string
  version: string
  config: ModelConfig
  versionDir: string
  /** Class names of outputs that have a `label_filename`. */
  labels: ReadonlyMap<string, readonly string[]>
  /** Inputs with a row for each box, where the detector has run before: for cameras. */
  boxInputs?: readonly string[]
  /**
   * Parameters of a built-in step by its place, and those of its folder where it has one. Absent: those of the folder, else of the
   * ensemble.
   */
  parametersOf?: (index: number, ofFolder: Parameters | undefined) => Parameters
  /** Created when the load began; those of the same ensemble that this one takes the place of go on. */
  statistics?: StatisticsRecorder
}>

type Parameters = ModelConfig['parameters']

/** What an ensemble needs of the server around it. */
export type EnsembleHost = Readonly<{
  find: FindModel
  /** Puts a scheduler before a built-in step that belongs to the ensemble. */
  serve(opened: OpenedModel, context: BackendContext): Promise<LoadedModel>
  /** What cameras run models at that leave their size open, by model: a picture of a client then has the boxes that a camera's has. */
  inputSizes?: ReadonlyMap<string, SizePx>
  log: Log
}>

/**
 * Finds the models of an ensemble, starts its built-in steps and checks that everything fits together.
 *
 * Steps may be ensembles themselves. A step that names a built-in step without a folder of that name, or a folder with that backend that
 * leaves its settings open, gets an instance of its own, set up for the models beside it.
 *
 * @throws ModelConfigError naming step and tensor, ModelInvalidError, HeadUnknownError
 */
export async function createEnsembleModel(
  definition: EnsembleDefinition,
  host: EnsembleHost,
): Promise<EnsembleModel> {
  const { name, version, config, labels } = definition
  const { graph, steps } = onGpuWhereItRuns(name, config, host)
  const binder = new StepBinder(
    name,
    steps.map(({ title, step, builtIn, model }) => ({
      title,
      step,
      model: builtIn === undefined ? model : undefined,
    })),
    host.inputSizes,
  )
  const ownSteps: LoadedModel[] = []
  try {
    const models: StepModel[] = []
    for (const [index, found] of steps.entries()) {
      const { title, step, builtIn, model } = found
      if (builtIn === undefined && model !== undefined) {
        models.push(sharedStep(title, model, versionOf(step), host.find))
        continue
      }
      const own = await startBuiltIn(definition, found, index, binder, host)
      ownSteps.push(own.model)
      models.push(ownStep(title, own.model, own.labels))
    }
    const plan = planEnsemble(name, graph, models, definition.boxInputs)
    const statistics = definition.statistics ?? new StatisticsRecorder(name, version, config.metric_tags)
    const ensemble = new EnsembleModel({ name, version, config, plan, labels, ownSteps, statistics })
    statistics.recordLoaded()
    return ensemble
  } catch (error) {
    await Promise.all(ownSteps.map((step) => step.stop(0)))
    throw error
  }
}

type Found = Readonly<{ graph: ModelConfig; steps: readonly FoundStep[] }>

/**
 * The steps with the ensemble's model for GPUs in its place, where that is loaded and runs on one.
 *
 * @throws ModelConfigError
 */
function onGpuWhereItRuns(name: string, config: ModelConfig, host: EnsembleHost): Found {
  const own = foundIn(name, config, host)
  const gpuModel = gpuModelOf(config)
  if (gpuModel === undefined) return own
  const graph = withGpuModel(name, config, gpuModel, {
    runsFile: (index) => own.steps[index]?.model?.platform === 'onnxruntime_onnx',
    isHead: (index) => {
      const { builtIn, model } = own.steps[index] ?? {}
      return builtIn === 'detection_head' || model?.platform === 'detection_head'
    },
  })
  if (host.find(gpuModel, -1)?.onGpu !== true) {
    host.log.info({ model: name, gpuModel }, 'the model for GPUs is not used: it does not run on one')
    return own
  }
  const onGpu = foundIn(name, graph, host)
  const index = graph.ensemble_scheduling?.step.findIndex((step, at) => step !== own.steps[at]?.step) ?? -1
  checkSameLabels(
    `ensemble "${name}": gantry.gpu_model`,
    labelled(own.steps[index]?.model),
    labelled(onGpu.steps[index]?.model),
  )
  host.log.info({ model: name, gpuModel }, 'the model for GPUs is used')
  return onGpu
}

function foundIn(name: string, graph: ModelConfig, host: EnsembleHost): Found {
  const steps = (graph.ensemble_scheduling?.step ?? []).map((step, index) =>
    findStep(name, step, index, host),
  )
  return { graph, steps }
}

function labelled(model: LoadedModel | undefined): Readonly<{ name: string; labels: readonly string[] }> {
  const outputs = model?.outputs ?? []
  return { name: model?.name ?? '', labels: outputs.flatMap((output) => model?.labels(output.name) ?? []) }
}

type FoundStep = Readonly<{
  title: string
  step: EnsembleStep
  model: LoadedModel | undefined
  /** Set for steps that belong to the ensemble. */
  builtIn: BuiltInStepName | undefined
}>

function findStep(ensemble: string, step: EnsembleStep, index: number, host: EnsembleHost): FoundStep {
  const { model_name: name } = step
  const title = `step[${index}] (${name || 'no model_name'})`
  const model = host.find(name, versionOf(step))
  if (model === undefined) {
    if (isBuiltInStep(name)) return { title, step, model, builtIn: name }
    throw missingStep(ensemble, title, name)
  }
  const { platform, config } = model
  return { title, step, model, builtIn: isOpen(platform, config) ? platform : undefined }
}

/** A crop always takes its form from the model that reads it; the others only where their folder does not spell it out. */
function isOpen(platform: string, config: ModelConfig): platform is 'letterbox' | 'detection_head' | 'crop' {
  if (platform === 'crop') return true
  const isBound = platform === 'letterbox' || platform === 'detection_head'
  return isBound && parameterOf(config, 'gantry.input_size') === undefined
}

async function startBuiltIn(
  ensemble: EnsembleDefinition,
  { title, builtIn, model, step }: FoundStep,
  index: number,
  binder: StepBinder,
  host: EnsembleHost,
): Promise<Readonly<{ model: LoadedModel; labels: readonly string[] }>> {
  const given = model?.config ?? { ...emptyModelConfig, parameters: ensemble.config.parameters }
  const config = {
    ...given,
    parameters: ensemble.parametersOf?.(index, model?.config.parameters) ?? given.parameters,
    name: step.model_name,
    max_batch_size: ensemble.config.max_batch_size ?? 0,
    input: [],
    output: [],
  }
  const { backend, labels } = bound(
    builtIn ?? 'image_decode',
    binder.steps[index]!,
    binder,
    config,
    detectionLabels(ensemble, step),
  )
  const context: BackendContext = {
    name: step.model_name,
    version: model?.version ?? '1',
    config,
    versionDir: ensemble.versionDir,
    log: host.log.child({ step: title }),
  }
  return { model: await host.serve(await backend.open(context), context), labels }
}

function bound(
  name: BuiltInStepName,
  place: BindingStep,
  binder: StepBinder,
  config: ModelConfig,
  ownLabels: readonly string[] | undefined,
): { backend: Backend; labels: readonly string[] } {
  switch (name) {
    case 'image_decode':
      return { backend: new ImageDecodeBackend(), labels: [] }
    case 'letterbox':
      return { backend: new LetterboxBackend(binder.letterbox(place)), labels: [] }
    case 'detection_head': {
      const head = binder.head(place, ownLabels)
      return { backend: new DetectionHeadBackend(head), labels: head.labels }
    }
    case 'crop':
      return { backend: new CropBackend(binder.crop(place, config)), labels: [] }
    default:
      return name satisfies never
  }
}

/** The ensemble's own names for what a detection head gives; a list for all of several outputs may be meant for another one. */
function detectionLabels(
  { config, labels }: EnsembleDefinition,
  { output_map }: EnsembleStep,
): readonly string[] | undefined {
  const output = config.output.find(({ name }) => name === output_map.detections)
  const isOwn = config.output.length === 1 || (output?.label_filename ?? '') !== ''
  return output !== undefined && isOwn ? labels.get(output.name) : undefined
}

/** 0 and -1 are the highest version that serves. */
function versionOf({ model_version: version = -1 }: EnsembleStep): number {
  return version <= 0 ? -1 : version
}
