import { noLabel } from '../repository/labels.js'
import { ModelConfigError } from '../repository/errors.js'
import { type ModelConfig, parameterOf } from '../repository/model-config.js'
import { elementsOf, float16Bits, floatsOf, stringsOf } from '../tensors/elements.js'
import type { Tensor, TensorSpec } from '../tensors/tensor.js'
import type { Attribute, Detection } from '../vision/detection.js'
import { sigmoid, softmaxSum } from '../detector/heads/activation.js'
import type { EnsemblePlan } from './ensemble-plan.js'

/** What is done with the numbers of a classifier to make them scores in 0..1. */
const activations = ['none', 'sigmoid', 'softmax'] as const
type Activation = (typeof activations)[number]

/** An output of an ensemble, a row for each box, that becomes an attribute of detections. */
export type PlannedAttribute = Readonly<{
  name: string
  /** Name of the output: BYTES `[N]`, the value as text, or FP32 or FP16 `[N, C]`, of which the highest is the value. */
  output: string
  /** Values by column; empty: the number of the column is the value. */
  values: readonly string[]
  activation: Activation
  /** Labels of the detections that have it; `undefined`: all. */
  of: readonly string[] | undefined
}>

/** In the order of the parameter. */
export type AttributePlan = readonly PlannedAttribute[]

const longestName = 64
const longestText = 256

/**
 * Which outputs of an ensemble become attributes, by its parameters `gantry.attributes`, `gantry.attribute_labels` and
 * `gantry.attribute_activation`.
 *
 * @param labels - names of the values of an output.
 * @throws ModelConfigError naming the attribute and its output.
 */
export function planAttributes(
  ensemble: string,
  config: ModelConfig,
  { outputs, boxRows }: Pick<EnsemblePlan, 'outputs' | 'boxRows'>,
  labels: (output: string) => readonly string[],
): AttributePlan {
  const fail = (problem: string, hint: string): never => {
    throw new ModelConfigError(`ensemble "${ensemble}": ${problem}`, hint)
  }
  const pairs = pairsOf(config, 'gantry.attributes', ',', fail)
  const of = new Map(
    pairsOf(config, 'gantry.attribute_labels', ';', fail).map(([name, list]) => [name, listOf(list)]),
  )
  const stray = [...of.keys()].find((name) => !pairs.some(([known]) => known === name))
  if (stray !== undefined)
    fail(
      `gantry.attribute_labels names "${stray}", which gantry.attributes has not`,
      'Write helmet_colour=helmet, with a semicolon between two attributes.',
    )
  const words = activationsOf(config, pairs.length, fail)
  return pairs.map(([name, output], index) => {
    const title = `gantry.attributes: output "${output}" of attribute "${name}"`
    const spec = outputs.find((known) => known.name === output)
    if (spec === undefined)
      return fail(
        `${title} is none of the ensemble`,
        `Its outputs are: ${outputs.map((known) => known.name).join(', ')}.`,
      )
    if (!boxRows.has(output))
      return fail(
        `${title} has no row for each box`,
        'Name an output of a step behind the detection head; max_batch_size of the ensemble is 0.',
      )
    const problem = formProblem(spec, labels(output), words[index]!)
    if (problem !== undefined)
      return fail(
        `${title} ${problem}`,
        'It must be TYPE_STRING [ -1 ], or TYPE_FP32 or TYPE_FP16 [ -1, C ] with a label for each of C values.',
      )
    return { name, output, values: labels(output), activation: words[index]!, of: of.get(name) }
  })
}

function formProblem(
  { datatype, shape }: TensorSpec,
  labels: readonly string[],
  activation: Activation,
): string | undefined {
  const form = `is ${datatype} [${shape.join(', ')}]`
  if (datatype === 'BYTES') {
    if (shape.length !== 1 || shape[0] !== -1) return form
    return activation === 'none' ? undefined : `is text, but has gantry.attribute_activation "${activation}"`
  }
  const [rows, values = 0] = shape
  const isFloat = datatype === 'FP32' || datatype === 'FP16'
  if (!isFloat || shape.length !== 2 || rows !== -1 || values === 0) return form
  if (values === 1) return `${form}: of one value there is no highest`
  if (values > 0 && labels.length > 0 && labels.length !== values)
    return `has ${values} values, but ${labels.length} labels`
  return undefined
}

type Fail = (problem: string, hint: string) => never
type ListKey = 'gantry.attributes' | 'gantry.attribute_labels'

/** `NAME=VALUE`, several with a separator between them. */
function pairsOf(
  config: ModelConfig,
  key: ListKey,
  separator: string,
  fail: Fail,
): readonly (readonly [name: string, value: string])[] {
  const text = parameterOf(config, key)
  if (text === undefined) return []
  const pairs = text.split(separator).map((pair) => {
    const [, name = '', value = ''] = /^\s*([A-Za-z_][\w.-]*)\s*=\s*(\S(?:.*\S)?)\s*$/.exec(pair) ?? []
    if (name !== '' && name.length <= longestName) return [name, value] as const
    return fail(
      `parameter ${key} is "${text}"`,
      `Write NAME=${key === 'gantry.attributes' ? 'OUTPUT' : 'LABEL, LABEL'}, several with "${separator}" between them; a name has letters, digits and _ . - and at most ${longestName} of them.`,
    )
  })
  const twice = pairs.find(([name], index) => pairs.findIndex(([other]) => other === name) !== index)
  if (twice !== undefined) fail(`parameter ${key} has "${twice[0]}" twice`, 'Give each attribute once.')
  return pairs
}

function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((label) => label.trim())
    .filter((label) => label !== '')
}

/** One word for all attributes, or one for each. */
function activationsOf(config: ModelConfig, count: number, fail: Fail): readonly Activation[] {
  const text = parameterOf(config, 'gantry.attribute_activation')
  if (text === undefined) return Array.from({ length: count }, () => 'none')
  const words = text.split(',').map((word) => activations.find((known) => known === word.trim()))
  const all = words.length === 1 ? Array.from({ length: count }, () => words[0]) : words
  const isGood = count > 0 && all.length === count
  const known = all.flatMap((word) => word ?? [])
  if (isGood && known.length === count) return known
  return fail(
    `parameter gantry.attribute_activation is "${text}" for ${count} attributes`,
    `Use one of ${activations.join(', ')} for all, or one for each with commas between them.`,
  )
}

/**
 * The attributes of each box, in the order of the plan.
 *
 * An output that cannot be read (another number of rows, scores outside of 0..1) costs its attributes, not the others.
 *
 * @param tensors - outputs of the ensemble. What is missing has no attributes: its step failed.
 * @param boxes - in the order of the rows.
 * @param onProblem - told what could not be read, once for each attribute.
 */
export function attributesOf(
  plan: AttributePlan,
  tensors: readonly Tensor[],
  boxes: readonly Pick<Detection, 'label'>[],
  onProblem: (attribute: PlannedAttribute, problem: string) => void,
): readonly (readonly Attribute[])[] {
  const found = boxes.map((): Attribute[] => [])
  for (const planned of plan) {
    const tensor = tensors.find(({ name }) => name === planned.output)
    if (tensor === undefined) continue
    const rows = rowsOf(planned, tensor, boxes.length)
    if (typeof rows === 'string') onProblem(planned, rows)
    else
      boxes.forEach(({ label }, box) => {
        const { value = '', score } = rows[box] ?? {}
        const isOf = planned.of === undefined || planned.of.includes(label)
        if (!isOf || value === '' || value === noLabel) return
        found[box]!.push({ name: planned.name, value, ...(score === undefined ? {} : { score }) })
      })
  }
  return found
}

type Value = Omit<Attribute, 'name'>

/** A value for each box, empty where it has none; or why there are none. */
function rowsOf(planned: PlannedAttribute, tensor: Tensor, boxes: number): readonly Value[] | string {
  const { shape } = tensor
  if (shape[0] !== boxes) return `has ${shape[0] ?? 0} rows for ${boxes} boxes`
  if (tensor.datatype !== 'BYTES') return bestValues(planned, tensor)
  const texts = Array.from(stringsOf(tensor.data), (text) => Buffer.from(text).toString('utf8'))
  const long = texts.find((text) => text.length > longestText)
  if (long !== undefined) return `has a text of ${long.length} characters, which are more than ${longestText}`
  return texts.map((value) => ({ value }))
}

function bestValues(
  { values, activation }: PlannedAttribute,
  { datatype, shape, data }: Tensor,
): readonly Value[] | string {
  const [rows = 0, columns = 0] = shape
  const numbers = datatype === 'FP16' ? floatsOf(float16Bits(aligned(data))) : floats(data)
  const found: Value[] = []
  for (let row = 0; row < rows; row++) {
    const begin = row * columns
    let best = 0
    for (let column = 1; column < columns; column++)
      if (numbers[begin + column]! > numbers[begin + best]!) best = column
    const score = activated(activation, numbers, begin, columns, best)
    if (!(score >= 0 && score <= 1))
      return `has the score ${score}, which is not in 0..1: set gantry.attribute_activation`
    found.push({ value: values[best] ?? String(best), score: Math.round(score * 10_000) / 10_000 })
  }
  return found
}

function activated(
  activation: Activation,
  numbers: Float32Array,
  begin: number,
  columns: number,
  best: number,
): number {
  const value = numbers[begin + best]!
  switch (activation) {
    case 'none':
      return value
    case 'sigmoid':
      return sigmoid(value)
    case 'softmax': {
      const { highest, sum } = softmaxSum(numbers, begin, columns)
      return Math.exp(value - highest) / sum
    }
    default:
      return activation satisfies never
  }
}

function floats(data: Uint8Array): Float32Array {
  return elementsOf('FP32', data) as Float32Array
}

function aligned(data: Uint8Array): Uint8Array {
  return data.byteOffset % 2 === 0 ? data : new Uint8Array(data)
}
