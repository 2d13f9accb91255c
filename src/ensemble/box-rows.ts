import { elementBytes } from '../tensors/element-type.js'
import { stringsOf } from '../tensors/elements.js'
import { elementCount, type Tensor } from '../tensors/tensor.js'
import { ServingError } from '../tensors/serving-error.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import type { PlannedStep } from './step-model.js'

/**
 * Tensors with a row for each box: what a detection head or a crop gives, and what steps behind them do.
 *
 * Where one of them has no row there was no box: steps that read it do not run, and what they would give has no rows either.
 *
 * @param steps - each after those it reads from.
 * @param boxInputs - inputs of the ensemble that have a row for each box.
 */
export function boxRowsOf(steps: readonly PlannedStep[], boxInputs: readonly string[]): ReadonlySet<string> {
  const rows = new Set(boxInputs)
  for (const { inputs, outputs, model } of steps) {
    const isBehind = inputs.some(([, tensor]) => rows.has(tensor))
    for (const [own, tensor] of outputs) if (isBehind || model.rowsPerBox.includes(own)) rows.add(tensor)
  }
  return rows
}

/** What a step gives that does not run, under the names of the ensemble. */
export function withoutRows({ outputs, model }: PlannedStep): readonly Tensor[] {
  return outputs.flatMap(([own, name]) => {
    const spec = model.outputs.find((output) => output.name === own)
    if (spec === undefined) return []
    const shape = spec.shape.map((size, axis) => (axis === 0 ? 0 : Math.max(size, 0)))
    return [{ name, datatype: spec.datatype, shape, data: new Uint8Array(0) }]
  })
}

/** Most rows that a model takes in one request. */
export function mostRows({ config, inputs }: LoadedModel, names: readonly string[]): number {
  const { max_batch_size: most = 0, sequence_batching: sequences } = config
  // A sequence takes one request for one.
  if (sequences !== undefined) return Infinity
  if (most > 0) return most
  // A model that was exported for one picture takes them one by one.
  return inputs.some(({ name, shape }) => shape[0] === 1 && names.includes(name)) ? 1 : Infinity
}

/**
 * Inputs of one request as those of several with at most `most` rows each.
 *
 * @param names - of the inputs that have a row for each box; the others go with every piece.
 */
export function inPieces(
  inputs: readonly Tensor[],
  names: readonly string[],
  most: number,
): readonly (readonly Tensor[])[] {
  const isSplit = ({ name }: Tensor) => names.includes(name)
  const count = Math.max(0, ...inputs.filter(isSplit).map(({ shape }) => shape[0] ?? 0))
  if (count <= most) return [inputs]
  const parts = inputs.map((tensor) => (isSplit(tensor) ? split(tensor, most) : undefined))
  return Array.from({ length: Math.ceil(count / most) }, (_, piece) =>
    inputs.map((tensor, index) => {
      const { movable: _, ...kept } = tensor
      return parts[index]?.[piece] ?? kept
    }),
  )
}

function split({ name, datatype, shape, data }: Tensor, most: number): readonly Tensor[] {
  const [rows = 0, ...rest] = shape
  const perRow = elementCount(rest)
  const ends = datatype === 'BYTES' ? endsOfStrings(data, most * perRow) : undefined
  const bytes = perRow * elementBytes(datatype)
  return Array.from({ length: Math.ceil(rows / most) }, (_, piece) => {
    const from = piece * most
    const to = Math.min(rows, from + most)
    const [begin, end] =
      ends === undefined ? [from * bytes, to * bytes] : [ends[piece - 1] ?? 0, ends[piece] ?? data.byteLength]
    return { name, datatype, shape: [to - from, ...rest], data: data.subarray(begin, end) }
  })
}

/** Where every `each` elements of BYTES end. */
function endsOfStrings(data: Uint8Array, each: number): readonly number[] {
  const ends: number[] = []
  let count = 0
  let end = 0
  for (const element of stringsOf(data)) {
    end += 4 + element.byteLength
    count += 1
    if (count % each === 0) ends.push(end)
  }
  return ends
}

/** The answers to several pieces as that to the whole. @throws ServingError where they have no rows that follow each other */
export function joined(pieces: readonly (readonly Tensor[])[]): readonly Tensor[] {
  const [first = [], ...others] = pieces
  if (others.length === 0) return first
  const names = namesOf(first)
  if (others.some((piece) => namesOf(piece) !== names))
    throw new ServingError('INTERNAL', 'pieces of a batch were answered with other outputs each')
  return first.map((tensor) => {
    const parts = pieces.map((piece) => piece.find(({ name }) => name === tensor.name) ?? tensor)
    const rest = tensor.shape.slice(1).join()
    if (tensor.shape.length === 0 || parts.some(({ shape }) => shape.slice(1).join() !== rest))
      throw new ServingError(
        'INTERNAL',
        `output '${tensor.name}' of pieces of a batch is ${parts.map(({ shape }) => `[${shape.join(',')}]`).join(' and ')}: these do not follow each other`,
      )
    const rows = parts.reduce((sum, { shape }) => sum + shape[0]!, 0)
    const { name, datatype, shape } = tensor
    const data = new Uint8Array(Buffer.concat(parts.map((part) => part.data)))
    return { name, datatype, shape: [rows, ...shape.slice(1)], data }
  })
}

function namesOf(tensors: readonly Tensor[]): string {
  return tensors.map(({ name }) => name).join()
}
