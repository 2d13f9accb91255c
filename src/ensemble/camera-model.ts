import { ModelConfigError, ModelNotFoundError } from '../repository/errors.js'
import { readModel, type RepositoryModel } from '../repository/model-definition.js'
import { type OnnxModel, openOnnxModel } from '../repository/onnx-model.js'
import type { Repositories } from '../repository/repository-files.js'
import { type ModelConfig, parameterOf } from '../repository/model-config.js'
import { limitParameters } from '../detector/detection-head/head-parameters.js'
import { cameraSteps, type CameraSteps, type FusedSteps } from './camera-steps.js'
import type { ResolvedStep } from './ensemble-graph.js'
import { readCameraEnsemble } from './inlined-ensembles.js'
import { checkSameLabels, gpuModelOf } from '../repository/gpu-model.js'
import { openFloat16Model } from './float16-model.js'

/** The model cameras run on, and the name their results carry. */
export type CameraModel = Readonly<{
  name: string
  version: string
  /** What runs in one go with letterbox and head; absent where the detector is a step like any other. */
  detector: OnnxModel | undefined
  /** The one that takes its place on a GPU, where the ensemble names one. */
  gpuDetector: OnnxModel | undefined
  /** The one in float16 of what runs on a GPU, where that names one: taken where it is measured to be faster. */
  float16Detector: OnnxModel | undefined
  /** Whose parameters say what counts as a detection: the head's where it has a folder, else the ensemble's, else the detector's. */
  head: Readonly<{ name: string; config: ModelConfig }>
  /** The steps of an ensemble, its configuration and its folder. */
  ensemble: Readonly<{ steps: CameraSteps; config: ModelConfig; dir: string }> | undefined
  /** Settings of the configuration that have no effect. */
  warnings: readonly string[]
}>

/**
 * Finds what cameras run behind a name of the repository: an ensemble with a letterbox, behind which they enter, or a detector model, to
 * which letterbox and detection head are added.
 *
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError
 */
export function findCameraModel(repositories: Repositories, name: string): CameraModel {
  const entry = entryOf(repositories, name)
  if (entry.backend === 'ensemble') return ofEnsemble(repositories, entry)
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
    float16Detector: openFloat16Model(repositories, detector),
    head: detector,
    ensemble: undefined,
    warnings: detector.warnings,
  }
}

function ofEnsemble(repositories: Repositories, entry: RepositoryModel): CameraModel {
  const { name, config } = entry
  const { graph, warnings } = readCameraEnsemble(repositories, entry)
  const steps = cameraSteps(graph, config)
  const { fused } = steps
  const detector = fused && detectorOf(repositories, fused)
  const gpuDetector = gpuDetectorOf(repositories, entry, fused, detector)
  return {
    name,
    version: graph.version,
    detector,
    gpuDetector,
    float16Detector: openFloat16Model(repositories, gpuDetector ?? detector),
    head: fused === undefined ? entry : headOf(fused.head),
    ensemble: { steps, config, dir: entry.folder.dir },
    warnings: [
      ...warnings,
      ...limitsWithoutHead(entry, graph.steps),
      ...(detector?.warnings ?? []),
      ...(gpuDetector?.warnings ?? []),
    ],
  }
}

/** Limits of an ensemble whose heads all stand in ensembles inside it, which say them. */
function limitsWithoutHead(
  { name, config }: RepositoryModel,
  steps: readonly ResolvedStep[],
): readonly string[] {
  const heads = steps.filter(({ backend }) => backend === 'detection_head')
  const [head] = heads
  if (head === undefined || heads.some(({ ensemble }) => ensemble.name === name)) return []
  return limitParameters
    .filter((key) => parameterOf(config, key) !== undefined)
    .map((key) => `${key} has no effect: the detection head stands in "${head.ensemble.name}", which says it`)
}

/** The detector as cameras use it, which not every field of a configuration fits. */
function detectorOf(repositories: Repositories, { detector: { step } }: FusedSteps): OnnxModel {
  const { model_name: name, model_version: version = -1 } = step
  return openOnnxModel(readModel(repositories, name), version <= 0 ? -1 : version)
}

/** Checks that the model for GPUs fits where the ensemble's own is. */
function gpuDetectorOf(
  repositories: Repositories,
  entry: RepositoryModel,
  fused: FusedSteps | undefined,
  detector: OnnxModel | undefined,
): OnnxModel | undefined {
  const { name, config } = fused?.detector.ensemble ?? entry
  if (gpuModelOf(config) === undefined) return undefined
  const onGpu = cameraSteps(readCameraEnsemble(repositories, entry, true).graph, entry.config).fused
  if (onGpu === undefined || detector === undefined) return undefined
  const gpuDetector = detectorOf(repositories, onGpu)
  checkSameLabels(
    `ensemble "${name}": gantry.gpu_model`,
    { name: detector.name, labels: detector.labels ?? [] },
    { name: gpuDetector.name, labels: gpuDetector.labels ?? [] },
  )
  return gpuDetector
}

function headOf({ step, config, ensemble }: ResolvedStep): CameraModel['head'] {
  return config === undefined ? ensemble : { name: step.model_name, config }
}

function entryOf(repositories: Repositories, name: string): RepositoryModel {
  try {
    return readModel(repositories, name)
  } catch (error) {
    if (!(error instanceof ModelNotFoundError)) throw error
    const wayOut = 'Name a detector as `ensemble`, or set `engines: 0` to serve models without cameras.'
    throw new ModelNotFoundError(error.message, `${error.hint} ${wayOut}`)
  }
}
