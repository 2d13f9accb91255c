import { ModelConfigError } from '../repository/errors.js'
import { gpuModelOf, withGpuModel } from '../repository/gpu-model.js'
import type { ModelConfig } from '../repository/model-config.js'
import { readModel, type RepositoryModel } from '../repository/model-definition.js'
import type { Repositories } from '../repository/repository-files.js'
import { type EnsembleGraph, readEnsemble, type ResolvedStep } from './ensemble-graph.js'

/** As for an ensemble that has them all itself. */
const mostSteps = 128

/** An ensemble as cameras run it, and what of its configuration, and of those inside it, has no effect. */
export type CameraEnsemble = Readonly<{ graph: EnsembleGraph; warnings: readonly string[] }>

/**
 * Reads an ensemble for cameras: ensembles inside it that read the whole picture give way to their steps, so that a letterbox and a
 * detector in them are found. Others, behind the letterbox, stay models like any other.
 *
 * @param onGpu - with the models for GPUs in their places.
 * @throws ModelConfigError naming step and tensor; what opening a step's model throws.
 */
export function readCameraEnsemble(
  repositories: Repositories,
  entry: RepositoryModel,
  onGpu = false,
): CameraEnsemble {
  const warnings = [...entry.warnings]
  const read = (each: RepositoryModel) =>
    onGpu ? readOnGpu(repositories, each) : readEnsemble(repositories, each)
  const inlinedIn = (each: RepositoryModel, path: readonly string[]): EnsembleGraph => {
    let graph = read(each)
    for (;;) {
      const step = pictureReader(graph, each.config)
      if (step === undefined) return graph
      const { model_name: name } = step.step
      checkNoCircle(entry.name, [...path, name])
      const inner = readModel(repositories, name)
      checkBatches(each, step, inner)
      warnings.push(...inner.warnings)
      graph = inlined(graph, step, inlinedIn(inner, [...path, name]), inner.config)
      if (graph.steps.length > mostSteps)
        fail(
          entry.name,
          `it has more than ${mostSteps} steps with those of the ensembles in it`,
          'Use fewer.',
        )
    }
  }
  return { graph: inlinedIn(entry, [entry.name]), warnings }
}

/** An ensemble with its model for GPUs in the place of its own, where it names one. */
function readOnGpu(repositories: Repositories, entry: RepositoryModel): EnsembleGraph {
  const graph = readEnsemble(repositories, entry)
  const gpuModel = gpuModelOf(entry.config)
  if (gpuModel === undefined) return graph
  const config = withGpuModel(entry.name, entry.config, gpuModel, {
    runsFile: (index) => graph.steps[index]?.model !== undefined,
    isHead: (index) => graph.steps[index]?.backend === 'detection_head',
  })
  return readEnsemble(repositories, { ...entry, config })
}

/** An ensemble that reads an input, or what was made of one without a letterbox. */
function pictureReader({ steps }: EnsembleGraph, { input }: ModelConfig): ResolvedStep | undefined {
  const pictures = new Set(input.map(({ name }) => name))
  const readers = new Set<ResolvedStep>()
  for (let before = -1; before < readers.size;) {
    before = readers.size
    for (const step of steps)
      if (!readers.has(step) && Object.values(step.step.input_map).some((tensor) => pictures.has(tensor))) {
        if (step.backend === 'ensemble') return step
        readers.add(step)
        if (step.backend !== 'letterbox')
          for (const tensor of Object.values(step.step.output_map)) pictures.add(tensor)
      }
  }
  return undefined
}

/** The outer graph with the steps of an ensemble in the place of the one that names it. */
function inlined(
  outer: EnsembleGraph,
  place: ResolvedStep,
  inner: EnsembleGraph,
  { input }: ModelConfig,
): EnsembleGraph {
  const given = new Map(Object.entries(place.step.input_map))
  const taken = new Map(Object.entries(place.step.output_map))
  const isInput = (tensor: string) => input.some(({ name }) => name === tensor)
  const prefix = prefixOf(outer, place)
  const outside = (tensor: string) => taken.get(tensor) ?? `${prefix}${tensor}`
  const steps = inner.steps.map((each): ResolvedStep => {
    const { input_map, output_map } = each.step
    const inputs = Object.entries(input_map).flatMap(([own, tensor]) => {
      const name = isInput(tensor) ? given.get(tensor) : outside(tensor)
      // An optional input that the outer ensemble leaves out.
      return name === undefined ? [] : [[own, name] as const]
    })
    const outputs = Object.entries(output_map).map(([own, tensor]) => [own, outside(tensor)] as const)
    return {
      ...each,
      title: `${place.title}, ${each.title}`,
      step: {
        ...each.step,
        input_map: Object.fromEntries(inputs),
        output_map: Object.fromEntries(outputs),
      },
    }
  })
  // An input that the inner ensemble gives back as it is.
  const same = new Map([...taken].flatMap(([own, name]) => (isInput(own) ? [[name, given.get(own)!]] : [])))
  return {
    ...outer,
    steps: outer.steps.flatMap((step) => (step === place ? steps : [withInputs(step, same)])),
  }
}

function withInputs(each: ResolvedStep, same: ReadonlyMap<string, string>): ResolvedStep {
  if (same.size === 0) return each
  const inputs = Object.entries(each.step.input_map).map(
    ([own, tensor]) => [own, same.get(tensor) ?? tensor] as const,
  )
  return { ...each, step: { ...each.step, input_map: Object.fromEntries(inputs) } }
}

/** What makes the names of inner tensors their own. */
function prefixOf({ steps }: EnsembleGraph, { title }: ResolvedStep): string {
  const names = steps.flatMap(({ step }) => [
    ...Object.values(step.input_map),
    ...Object.values(step.output_map),
  ])
  let prefix = `${title}/`
  while (names.some((name) => name.startsWith(prefix))) prefix += '/'
  return prefix
}

function checkNoCircle(ensemble: string, path: readonly string[]): void {
  const circle = path.slice(path.indexOf(path.at(-1)!))
  if (circle.length > 1)
    fail(
      ensemble,
      `circular dependency between ensembles: ${circle.join(' -> ')}`,
      'Take one of the steps out.',
    )
}

/** Tensors of one run have a batch dimension everywhere, or nowhere. */
function checkBatches(outer: RepositoryModel, { title }: ResolvedStep, inner: RepositoryModel): void {
  const [of, ofInner] = [outer, inner].map(({ config }) => config.max_batch_size ?? 0)
  if (of === 0 && ofInner === 0) return
  if (of !== 0 && ofInner !== 0) return
  fail(
    outer.name,
    `${title} has max_batch_size ${ofInner}, and the ensemble ${of}: cameras, which run both as one, cannot tell what has a batch dimension`,
    'Give both a max_batch_size, or none.',
  )
}

function fail(ensemble: string, problem: string, hint: string): never {
  throw new ModelConfigError(`ensemble "${ensemble}": ${problem}`, hint)
}
