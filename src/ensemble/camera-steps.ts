import { ModelConfigError } from '../repository/errors.js'
import type { ModelConfig } from '../repository/model-config.js'
import type { EnsembleGraph, ResolvedStep } from './ensemble-graph.js'

/** What a camera brings into its ensemble, by the names of the steps that give it to API clients. */
export type CameraTensor = 'pixels' | 'frame' | 'geometry' | 'size' | 'detections'

/** Letterbox, detector and head as one run: where pixels become boxes without a tensor in between. */
export type FusedSteps = Readonly<{ detector: ResolvedStep; head: ResolvedStep }>

/** How cameras run an ensemble: they enter behind its letterbox, which the decoder has done. */
export type CameraSteps = Readonly<{
  letterbox: ResolvedStep
  /** Absent where the detector is no model file, or others read what it gives: it is then a step like any other. */
  fused: FusedSteps | undefined
  /** Those that run as they do for API clients, in the order of the ensemble. */
  others: readonly ResolvedStep[]
  /** What the others read and the camera brings: name in the ensemble -> what it is. */
  brought: ReadonlyMap<string, CameraTensor>
  /** Tensor of the ensemble with the boxes that are published. */
  detections: string
}>

/**
 * Works out how cameras run an ensemble. Every step behind the letterbox runs, fused or by itself; those before it only make its picture.
 *
 * @throws ModelConfigError naming the step that cameras cannot run, and why.
 */
export function cameraSteps(graph: EnsembleGraph, config: ModelConfig): CameraSteps {
  const letterbox = entryOf(graph)
  const fused = fusedSteps(graph, config, letterbox)
  const before = stepsBefore(graph, letterbox)
  const done = new Set([letterbox, ...before, ...(fused === undefined ? [] : [fused.detector, fused.head])])
  const others = graph.steps.filter((step) => !done.has(step))
  const brought = new Map<string, CameraTensor>()
  for (const [own, tensor] of Object.entries(letterbox.step.output_map))
    brought.set(tensor, own as CameraTensor)
  const boxes = fused?.head.step.output_map.detections
  if (boxes !== undefined) brought.set(boxes, 'detections')
  checkReadable(graph.name, others, brought)
  checkHeads(graph.name, others)
  return { letterbox, fused, others, brought, detections: detectionsOf(graph.name, config, others, boxes) }
}

function entryOf({ name, steps }: EnsembleGraph): ResolvedStep {
  const letterboxes = steps.filter(({ backend }) => backend === 'letterbox')
  // One may stand behind another; the first is where the picture comes in.
  const first = letterboxes.find((each) => !letterboxes.some((other) => other !== each && reads(each, other)))
  return (
    first ?? fail(name, 'it has no letterbox, behind which cameras enter', 'Begin with a step "letterbox".')
  )
}

/** A letterbox, a model file that takes its pixels, and the head that alone reads what that gives. */
function fusedSteps(
  { steps }: EnsembleGraph,
  config: ModelConfig,
  letterbox: ResolvedStep,
): FusedSteps | undefined {
  const given = letterbox.step.output_map
  const isOutput = (tensor: string | undefined) => config.output.some(({ name }) => name === tensor)
  const candidates = steps.flatMap((head): FusedSteps[] => {
    if (head.backend !== 'detection_head' || head.step.input_map.geometry !== given.geometry) return []
    const detector = steps.find((step) => step.model !== undefined && reads(head, step))
    if (detector === undefined) return []
    const takesPixels = Object.values(detector.step.input_map).every(
      (tensor) => tensor === given.pixels || tensor === given.size,
    )
    const written = Object.values(detector.step.output_map)
    const isReadAlone =
      !steps.some((other) => other !== head && reads(other, detector)) && !written.some(isOutput)
    return takesPixels && isReadAlone && head.step.output_map.detections !== undefined
      ? [{ detector, head }]
      : []
  })
  return candidates.find(({ head }) => isOutput(head.step.output_map.detections)) ?? candidates[0]
}

/** Steps that the letterbox waits for. */
function stepsBefore({ steps }: EnsembleGraph, letterbox: ResolvedStep): readonly ResolvedStep[] {
  const before = new Set<ResolvedStep>()
  const visit = (step: ResolvedStep): void => {
    for (const other of steps)
      if (!before.has(other) && reads(step, other)) {
        before.add(other)
        visit(other)
      }
  }
  visit(letterbox)
  return [...before]
}

function reads(step: ResolvedStep, from: ResolvedStep): boolean {
  const written = Object.values(from.step.output_map)
  return Object.values(step.step.input_map).some((tensor) => written.includes(tensor))
}

/** What is gone when the frame comes: the whole picture, and what was made of it before the letterbox. */
function checkReadable(
  ensemble: string,
  others: readonly ResolvedStep[],
  brought: ReadonlyMap<string, CameraTensor>,
): void {
  const written = new Set(others.flatMap(({ step }) => Object.values(step.output_map)))
  for (const { title, step } of others)
    for (const tensor of Object.values(step.input_map))
      if (!brought.has(tensor) && !written.has(tensor))
        fail(
          ensemble,
          `${title} reads "${tensor}", the picture before its letterbox, which cameras do not keep`,
          'Let it read an output of the letterbox: "frame" is the picture that the detector saw. API clients can run it as it is.',
        )
}

function checkHeads(ensemble: string, others: readonly ResolvedStep[]): void {
  const head = others.find(
    (step) =>
      step.backend === 'detection_head' &&
      !others.some((other) => reads(step, other) && other.backend !== 'letterbox'),
  )
  if (head !== undefined)
    fail(
      ensemble,
      `${head.title} reads nothing that a model gives`,
      'Map the outputs of the detector to its inputs.',
    )
}

/** Of the ensemble's outputs that have the form of detections, the head's own, or the one that a step behind it makes of them. */
function detectionsOf(
  ensemble: string,
  config: ModelConfig,
  others: readonly ResolvedStep[],
  fused: string | undefined,
): string {
  const outputs = config.output.map(({ name }) => name)
  if (fused !== undefined && outputs.includes(fused)) return fused
  const heads = others.filter(({ backend }) => backend === 'detection_head')
  const ofHeads = heads.flatMap(({ step }) => step.output_map.detections ?? [])
  const ofForm = config.output
    .filter(({ data_type, dims }) => data_type === 'TYPE_FP32' && dims.at(-1) === 6)
    .map(({ name }) => name)
  const [only, ...more] = ofForm
  const [ofHead, ...moreOfHeads] = ofHeads.filter((name) => outputs.includes(name))
  if (ofHead !== undefined && moreOfHeads.length === 0) return ofHead
  if (only !== undefined && more.length === 0) return only
  if (only === undefined && fused !== undefined) return fused
  return fail(
    ensemble,
    only === undefined
      ? 'no output has the form of detections, FP32 [-1, 6], so cameras get no boxes of it'
      : `outputs "${ofForm.join('", "')}" all have the form of detections, and none is that of the one detection_head`,
    'Give one output of detection_head, or of a step that makes such rows, as an output of the ensemble.',
  )
}

function fail(ensemble: string, problem: string, hint: string): never {
  throw new ModelConfigError(`ensemble "${ensemble}": ${problem}`, hint)
}
