import { ModelConfigError, ModelNotFoundError } from '../repository/errors.js'
import {
  type ModelEntry,
  openOnnxModel,
  type OnnxModel,
  readModelEntry,
} from '../repository/model-repository.js'
import type { ModelConfig } from '../repository/model-config.js'
import { type EnsembleGraph, readEnsemble, type ResolvedStep } from './ensemble-graph.js'
import { checkSameLabels, gpuModelOf, withGpuModel } from '../repository/gpu-model.js'

/** The model cameras run on, and the name their results carry. */
export type CameraModel = Readonly<{
  name: string
  version: string
  detector: OnnxModel
  /** The one that takes its place on a GPU, where the ensemble names one. */
  gpuDetector: OnnxModel | undefined
  /** Whose parameters say what counts as a detection: the head's where it has a folder, else the ensemble's, else the detector's. */
  head: Readonly<{ name: string; config: ModelConfig }>
  /** Settings of the configuration that have no effect. */
  warnings: readonly string[]
}>

/**
 * Finds the detector behind a name of the repository: an ensemble of letterbox, detector and detection head, or a detector
 * model, to which the same steps are added.
 *
 * Cameras enter the ensemble after its letterbox step, which the decoder has done.
 *
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError
 */
export function findCameraModel(repositoryDir: string, name: string): CameraModel {
  const entry = entryOf(repositoryDir, name)
  if (entry.backend === 'ensemble') {
    const graph = readEnsemble(repositoryDir, entry)
    const detector = detectorOf(graph)
    const gpuDetector = gpuDetectorOf(repositoryDir, entry, graph, detector)
    return {
      name,
      version: graph.version,
      detector,
      gpuDetector,
      head: headOf(entry, graph, detector),
      warnings: [...entry.warnings, ...detector.warnings, ...(gpuDetector?.warnings ?? [])],
    }
  }
  if (entry.backend !== 'onnxruntime')
    throw new ModelConfigError(
      `model "${name}" is a ${entry.backend} step and cannot analyse cameras by itself`,
      'Set `ensemble` to an ensemble or a detector model.',
    )
  const detector = openOnnxModel(entry)
  return {
    name,
    version: detector.version,
    detector,
    gpuDetector: undefined,
    head: detector,
    warnings: detector.warnings,
  }
}

/** Checks that the model for GPUs fits where the ensemble's own is. */
function gpuDetectorOf(
  repositoryDir: string,
  entry: ModelEntry,
  { name, steps }: EnsembleGraph,
  detector: OnnxModel,
): OnnxModel | undefined {
  const gpuModel = gpuModelOf(entry.config)
  if (gpuModel === undefined) return undefined
  const config = withGpuModel(name, entry.config, gpuModel, (_, index) => steps[index]?.model !== undefined)
  const onGpu = detectorOf(readEnsemble(repositoryDir, { ...entry, config }))
  checkSameLabels(
    name,
    { name: detector.name, labels: detector.labels ?? [] },
    { name: onGpu.name, labels: onGpu.labels ?? [] },
  )
  return onGpu
}

function headOf(entry: ModelEntry, { steps }: EnsembleGraph, detector: OnnxModel): CameraModel['head'] {
  const written = steps
    .filter(({ model }) => model === detector)
    .flatMap(({ step }) => Object.values(step.output_map))
  const head = steps.find(
    ({ step, backend }) =>
      backend === 'detection_head' && Object.values(step.input_map).some((name) => written.includes(name)),
  )
  return head?.config === undefined ? entry : { name: head.step.model_name, config: head.config }
}

function entryOf(repositoryDir: string, name: string): ModelEntry {
  try {
    return readModelEntry(repositoryDir, name)
  } catch (error) {
    if (!(error instanceof ModelNotFoundError)) throw error
    const wayOut = 'Name a detector as `ensemble`, or set `engines: 0` to serve models without cameras.'
    throw new ModelNotFoundError(error.message, `${error.hint} ${wayOut}`)
  }
}

function detectorOf({ name, steps }: EnsembleGraph): OnnxModel {
  const models = steps.filter((step) => step.model !== undefined)
  const [detector, ...others] = models
  if (detector?.model === undefined || others.length > 0)
    throw new ModelConfigError(
      `ensemble "${name}" has ${models.length} steps that run a model file; cameras need exactly one`,
      'Leave one detector between letterbox and detection_head.',
    )
  if (!feeds(steps, 'letterbox', detector) || !reads(steps, detector, 'detection_head'))
    throw new ModelConfigError(
      `ensemble "${name}": ${detector.title} does not stand between letterbox and detection_head`,
      'Map an output of letterbox to its input, and its output to an input of detection_head.',
    )
  return detector.model
}

function feeds(steps: readonly ResolvedStep[], backend: 'letterbox', detector: ResolvedStep): boolean {
  const read = Object.values(detector.step.input_map)
  return steps.some((step) => step.backend === backend && read.includes(step.step.output_map.pixels ?? ''))
}

function reads(steps: readonly ResolvedStep[], detector: ResolvedStep, backend: 'detection_head'): boolean {
  const written = Object.values(detector.step.output_map)
  return steps.some(
    (step) =>
      step.backend === backend && Object.values(step.step.input_map).some((name) => written.includes(name)),
  )
}
