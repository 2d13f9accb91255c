import { ModelConfigError } from '../repository/errors.js'
import type { ConfigType } from '../tensors/element-type.js'
import { itemShape, sizesFit } from './batch-conversion.js'

/** A tensor of a step or of the ensemble. What is not known of it fits everything. */
export type GraphTensor = Readonly<{
  name: string
  dataType?: ConfigType
  /** With the batch dimension; -1 is any size. */
  shape?: readonly number[]
  /** The first size is the batch. */
  batched?: boolean
  /** Inputs that may be left out. */
  optional?: boolean
}>

/** One step of an ensemble and the tensors of its model. Maps go from the name of the step's tensor to the ensemble's. */
export type GraphStep = Readonly<{
  /** `step[1] (ppe_detect)`, for errors. */
  title: string
  inputMap: Readonly<Record<string, string>>
  outputMap: Readonly<Record<string, string>>
  inputs: readonly GraphTensor[]
  outputs: readonly GraphTensor[]
  /** The step also takes inputs under names of the reader's choice. */
  takesAny?: boolean
  /** What the step gives is known only when it runs. */
  givesAny?: boolean
}>

export type GraphBorder = Readonly<{
  name: string
  inputs: readonly GraphTensor[]
  outputs: readonly GraphTensor[]
}>

type Written = Readonly<{ by: string; tensor: GraphTensor }>

/**
 * Checks that every tensor of an ensemble is written once, by something that can, and fits all who read it.
 *
 * @returns the indices of the steps, each after those it reads from.
 * @throws ModelConfigError `GANTRY_MODEL_CONFIG` naming step and tensor.
 */
export function checkGraph(border: GraphBorder, steps: readonly GraphStep[]): readonly number[] {
  if (steps.length === 0) fail(border.name, 'it has no ensemble_scheduling steps', 'Add at least one step.')
  const written = writers(border, steps)
  for (const step of steps) checkInputs(border, step, written)
  checkOutputs(border, written)
  return orderOf(border, steps)
}

function writers(border: GraphBorder, steps: readonly GraphStep[]): ReadonlyMap<string, Written> {
  const written = new Map<string, Written>(
    border.inputs.map((tensor) => [tensor.name, { by: 'an input of the ensemble', tensor }]),
  )
  for (const { title, outputMap, outputs, givesAny = false } of steps) {
    for (const [own, name] of Object.entries(outputMap)) {
      const tensor = outputs.find((output) => output.name === own) ?? (givesAny ? { name: own } : undefined)
      if (tensor === undefined)
        fail(border.name, `${title} has no output "${own}"`, `Its outputs are: ${namesOf(outputs)}.`)
      const other = written.get(name)
      if (other !== undefined)
        fail(
          border.name,
          `"${name}" is written by ${title} and is already ${other.by}`,
          'Give it another name.',
        )
      written.set(name, { by: `an output of ${title}`, tensor })
    }
  }
  return written
}

function checkInputs(
  { name: ensemble }: GraphBorder,
  step: GraphStep,
  written: ReadonlyMap<string, Written>,
): void {
  const { title, inputMap, inputs, takesAny = false } = step
  for (const [own, name] of Object.entries(inputMap)) {
    const input = inputs.find((candidate) => candidate.name === own)
    if (input === undefined && !takesAny)
      fail(ensemble, `${title} has no input "${own}"`, `Its inputs are: ${namesOf(inputs)}.`)
    const source = written.get(name)
    if (source === undefined)
      fail(
        ensemble,
        `${title} reads "${name}", which nothing writes`,
        `There are: ${[...written.keys()].join(', ')}.`,
      )
    if (input !== undefined) checkFits(ensemble, `input "${own}" of ${title}`, input, name, source)
  }
  const missing = inputs.filter((input) => input.optional !== true && !(input.name in inputMap))
  if (missing.length > 0)
    fail(
      ensemble,
      `${title} is not given its input "${missing.map((i) => i.name).join('", "')}"`,
      'Add it to input_map.',
    )
}

function checkOutputs(border: GraphBorder, written: ReadonlyMap<string, Written>): void {
  for (const output of border.outputs) {
    const source = written.get(output.name)
    if (source === undefined)
      fail(
        border.name,
        `no step writes the output "${output.name}"`,
        `There are: ${[...written.keys()].join(', ')}.`,
      )
    checkFits(border.name, 'the output of the ensemble', output, output.name, source)
  }
}

function checkFits(
  ensemble: string,
  reader: string,
  wanted: GraphTensor,
  name: string,
  source: Written,
): void {
  const { tensor } = source
  if (sameType(wanted, tensor) && shapesFit(wanted, tensor)) return
  fail(
    ensemble,
    `${reader} is ${describe(wanted)}, but "${name}", ${source.by}, is ${describe(tensor)}`,
    'Put a step between them, or correct data_type and dims; -1 fits any size. Shapes must fit with the batch dimension, or without it.',
  )
}

function sameType({ dataType: a }: GraphTensor, { dataType: b }: GraphTensor): boolean {
  return a === undefined || b === undefined || a === b
}

/**
 * With the batch dimension, or without it, as it is taken off or put on between a model that has one and a model that has none. Sizes that
 * are free on either side are checked when a request runs.
 */
function shapesFit(a: GraphTensor, b: GraphTensor): boolean {
  if (a.shape === undefined || b.shape === undefined || sizesFit(a.shape, b.shape)) return true
  return sizesFit(itemShape(a.shape, a.batched === true), itemShape(b.shape, b.batched === true))
}

/** Steps by what they read; what is left when none can follow stands in a circle. */
function orderOf({ name, inputs }: GraphBorder, steps: readonly GraphStep[]): readonly number[] {
  const known = new Set(inputs.map((input) => input.name))
  const order: number[] = []
  let left = steps.map((_, index) => index)
  while (left.length > 0) {
    const next = left.filter((index) =>
      Object.values(steps[index]!.inputMap).every((tensor) => known.has(tensor)),
    )
    if (next.length === 0) fail(name, circleOf(steps, left, known), 'No step may wait for its own outputs.')
    for (const index of next) for (const tensor of Object.values(steps[index]!.outputMap)) known.add(tensor)
    order.push(...next)
    left = left.filter((index) => !next.includes(index))
  }
  return order
}

function circleOf(steps: readonly GraphStep[], left: readonly number[], known: ReadonlySet<string>): string {
  const waiting = left.map((index) => {
    const { title, inputMap } = steps[index]!
    const lacking = Object.values(inputMap).filter((tensor) => !known.has(tensor))
    return `${title} waits for "${lacking.join('", "')}"`
  })
  return `steps wait for each other in a circle: ${waiting.join('; ')}`
}

function namesOf(tensors: readonly GraphTensor[]): string {
  return tensors.map((tensor) => tensor.name).join(', ')
}

function describe({ dataType, shape }: GraphTensor): string {
  return `${dataType ?? 'of any type'} ${shape === undefined ? '' : `[${shape.join(', ')}]`}`.trim()
}

function fail(ensemble: string, problem: string, hint: string): never {
  throw new ModelConfigError(`ensemble "${ensemble}": ${problem}`, hint)
}
