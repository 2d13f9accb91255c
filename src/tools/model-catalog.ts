import { existsSync } from 'node:fs'
import { toErrorRecord, type ErrorRecord } from '../errors.js'
import type { ModelConfig } from '../repository/model-config.js'
import { readModel, type RepositoryModel } from '../repository/model-definition.js'
import { type OnnxModel, openOnnxModel } from '../repository/onnx-model.js'
import { modelNames, type Repositories, repositoriesFrom } from '../repository/repository-files.js'
import { type Processor, thisProcessor } from '../backends/onnxruntime/processor.js'
import type { ModelTensor } from '../tensors/tensor.js'
import { saturationOf } from '../backends/onnxruntime/wide-weights.js'
import { findCameraModel } from '../ensemble/camera-model.js'
import { planCameraModel, type PlannedDetector } from '../ensemble/check-camera-model.js'
import { isEnsembleForClientsAlone, isForClientsAlone } from '../ensemble/clients-alone.js'
import { classTable, type HeadClass } from '../detector/class-table.js'
import { noCameraShapes } from '../detector/input-size.js'
import { readEnsemble } from '../ensemble/ensemble-graph.js'
import { type HeadKind, outputsOf } from '../detector/heads/head.js'
import type { InputPlan } from '../detector/input-tensor.js'

/** One line of `gantry models list`. */
export type ModelSummary = Readonly<{
  name: string
  /** Empty where the folder cannot be read. */
  backend: string
  versions: readonly number[]
  fileBytes: number
  /** Whether the model can be served, as far as can be told without running it. */
  ok: boolean
  error?: ErrorRecord
}>

/** How cameras would use the model. */
export type DetectorReport = Readonly<{
  detector: string
  head: HeadKind
  /** Outputs that are read, in the order of the head. */
  headOutputs: readonly string[]
  /** How the head was recognised. */
  headFrom: string
  input: InputPlan
  /** What decided the size of the input; of a model that leaves it open, without any camera. */
  inputFrom: string
  labels: readonly string[]
  /** What the model's own numbers mean, of columns of scores or of classes; of the latter as far as the labels go. */
  classesBy: 'column' | 'number'
  classes: readonly HeadClass[]
}>

/** What `gantry models inspect` shows. */
export type ModelReport = Readonly<{
  name: string
  dir: string
  backend: string
  versions: readonly number[]
  /** Effective configuration: as written, with what the model file adds. */
  config: ModelConfig
  configFrom: 'config.pbtxt' | 'model file'
  warnings: readonly string[]
  /** For models with a file. */
  file?: Readonly<{
    path: string
    version: string
    bytes: number
    producer: string
    opsets: Readonly<Record<string, number>>
    inputs: readonly ModelTensor[]
    outputs: readonly ModelTensor[]
    metadata: Readonly<Record<string, string>>
    labelsFrom: string
  }>
  /** For ensembles. */
  steps?: readonly Readonly<{ model: string; backend: string; version: string }>[]
  /** Absent when cameras cannot use it; `detectorError` then says why. */
  detector?: DetectorReport
  /** The one that takes its place on a GPU, by `gantry.gpu_model`. */
  gpuDetector?: DetectorReport
  detectorError?: ErrorRecord
  /** Beside `detectorError`: it was never made for cameras, so that it is no fault. */
  forClientsAlone?: true
}>

/**
 * Every model of the repositories, broken ones included.
 *
 * @throws ModelNotFoundError if a repository itself cannot be read.
 */
export function listModels(repositories: Repositories): readonly ModelSummary[] {
  return modelNames(repositories).map((name) => {
    let entry: RepositoryModel | undefined
    try {
      entry = readModel(repositories, name)
      return { ...summary(entry), fileBytes: fileBytes(repositories, entry), ok: true }
    } catch (error) {
      const known = entry === undefined ? { name, backend: '', versions: [] } : summary(entry)
      return { ...known, fileBytes: 0, ok: false, error: toErrorRecord(error) }
    }
  })
}

function summary({
  name,
  backend,
  versions,
}: RepositoryModel): Pick<ModelSummary, 'name' | 'backend' | 'versions'> {
  return { name, backend, versions }
}

/** Opens what the model is made of. @returns bytes of its own model file. */
function fileBytes(repositories: Repositories, entry: RepositoryModel): number {
  if (entry.backend === 'onnxruntime') return openOnnxModel(entry).onnx.fileBytes
  if (entry.backend === 'ensemble') readEnsemble(repositoriesFrom(repositories, entry.name), entry)
  return 0
}

/**
 * All that can be said of a model without running it.
 *
 * @param processor - what it would run on.
 * @throws ModelNotFoundError, ModelConfigError, ModelInvalidError, ModelLabelsError
 */
export function inspectModel(
  repositories: Repositories,
  name: string,
  processor: Processor = thisProcessor(),
): ModelReport {
  const places = repositoriesFrom(repositories, name)
  const entry = readModel(places, name)
  const common = {
    name,
    dir: entry.folder.dir,
    backend: entry.backend,
    versions: entry.versions,
    config: entry.config,
    configFrom: existsSync(entry.folder.configFile) ? ('config.pbtxt' as const) : ('model file' as const),
    warnings: entry.warnings,
  }
  if (entry.backend === 'ensemble') {
    const found = readEnsemble(places, entry).steps
    const steps = found.map(({ step, backend, model }) => ({
      model: step.model_name,
      backend,
      version: model?.version ?? '',
    }))
    const saturation = found.flatMap(({ step, model }) =>
      saturationWarnings(model, processor).map((warning) => `${step.model_name}: ${warning}`),
    )
    const { notes, ...detectors } = detectorReport(places, name, () =>
      isEnsembleForClientsAlone(places, entry),
    )
    const warnings = [...entry.warnings, ...saturation, ...notes]
    return { ...common, warnings, steps, ...detectors }
  }
  if (entry.backend !== 'onnxruntime') return common
  const model = openOnnxModel(entry)
  const { config, path, version, onnx, labelsFrom } = model
  const { producer, opsets, inputs, outputs, metadata } = onnx
  const { notes, ...detectors } = detectorReport(places, name, () => isForClientsAlone(model))
  return {
    ...common,
    config,
    warnings: [...model.warnings, ...saturationWarnings(model, processor), ...notes],
    file: { path, version, bytes: onnx.fileBytes, producer, opsets, inputs, outputs, metadata, labelsFrom },
    ...detectors,
  }
}

function saturationWarnings(model: OnnxModel | undefined, processor: Processor): readonly string[] {
  const saturation = model === undefined ? undefined : saturationOf(model, processor)
  return saturation === undefined ? [] : [`${saturation.detail}; ${saturation.fix}`]
}

function detectorReport(
  repositories: Repositories,
  name: string,
  isForClients: () => boolean,
): Pick<ModelReport, 'detector' | 'gpuDetector' | 'detectorError' | 'forClientsAlone'> & {
  notes: readonly string[]
} {
  try {
    const planned = planCameraModel(findCameraModel(repositories, name), noCameraShapes)
    if (planned === undefined) return { notes: [] }
    const { own, onGpu } = planned
    return {
      detector: reportOf(own),
      ...(onGpu && { gpuDetector: reportOf(onGpu) }),
      notes: [...new Set([...own.plan.notes, ...(onGpu?.plan.notes ?? [])])],
    }
  } catch (error) {
    const detectorError = toErrorRecord(error)
    return { detectorError, ...(isForClients() && { forClientsAlone: true }), notes: [] }
  }
}

function reportOf({ detector, plan }: PlannedDetector): DetectorReport {
  const { head, input, sizeFrom, labels } = plan
  return {
    detector: `${detector.name}:${detector.version}`,
    head: head.kind,
    headOutputs: outputsOf(head),
    headFrom: head.reason ?? '',
    input,
    inputFrom: sizeFrom,
    labels,
    classesBy: head.columns === undefined ? 'number' : 'column',
    classes: classTable(head, labels),
  }
}
