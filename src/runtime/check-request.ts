import type { ModelConfig, ModelInput } from '../repository/model-config.js'
import { atOnce, inTurns, type Pieces } from '../lifecycle/in-turns.js'
import { elementCount, type Tensor } from '../tensors/tensor.js'
import { type Datatype, datatypeOfConfig, elementBytes } from '../tensors/element-type.js'
import type { InferRequest } from './infer.js'
import { ServingError } from '../tensors/serving-error.js'

type InputRules = Readonly<{
  input: ModelInput
  datatype: Datatype | undefined
  /** With the batch first where there is one; -1 is any size. */
  shape: readonly number[]
  /** A request may give it no dimension. */
  isScalar: boolean
}>

/** What of a configuration requests are checked against. */
export type RequestRules = Readonly<{
  model: string
  /** 0: no batch dimension. */
  maxBatchSize: number
  inputs: ReadonlyMap<string, InputRules>
  required: readonly string[]
  outputs: readonly string[]
  /** Whether requests can differ in more than their batch size. */
  hasShapes: boolean
}>

/** @param scalars - inputs that a request may give no dimension. */
export function requestRules(
  model: string,
  config: ModelConfig,
  scalars: readonly string[] = [],
): RequestRules {
  const maxBatchSize = config.max_batch_size ?? 0
  const rulesOf = (input: ModelInput): InputRules => ({
    input,
    datatype: datatypeOfConfig(input.data_type),
    shape: maxBatchSize > 0 ? [-1, ...input.dims] : input.dims,
    isScalar: scalars.includes(input.name),
  })
  return {
    model,
    maxBatchSize,
    inputs: new Map(config.input.map((input) => [input.name, rulesOf(input)])),
    required: config.input.filter((input) => input.optional !== true).map((input) => input.name),
    outputs: config.output.map((output) => output.name),
    hasShapes: config.input.some((input) => input.optional === true || input.dims.includes(-1)),
  }
}

/** A request that can run. */
export type CheckedRequest = Readonly<{
  /** By name, in the shapes that the model takes. */
  inputs: ReadonlyMap<string, Tensor>
  outputs: readonly string[]
  /** Outputs that the model does not give are left out of the answer: they were not named, or `mayLack`. */
  mayLack: boolean
  batchSize: number
  /** The same for requests that can share a run. */
  shapeKey: string
}>

const dimensionNote =
  '. NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.'

/**
 * Checks names, datatypes, shapes and sizes of a request.
 *
 * @throws ServingError INVALID_ARG in Triton's words
 * @see triton-inference-server/core, src/infer_request.cc, InferenceRequest::Normalize
 */
export function checkRequest(request: InferRequest, rules: RequestRules): CheckedRequest {
  const refuse = (problem: string) => invalid(request, problem)
  const inputs = new Map<string, Tensor>()
  for (const tensor of request.inputs) {
    if (inputs.has(tensor.name)) throw refuse(`input '${tensor.name}' already exists in request`)
    inputs.set(tensor.name, tensor)
  }
  checkCount(inputs, rules, refuse)
  const batchSize = checkBatch(request.inputs, rules, refuse)
  for (const tensor of request.inputs) checkTensor(tensor, rules, refuse)
  return {
    inputs: reshapeInputs(inputs, rules),
    outputs: checkOutputs(request, rules, refuse),
    // What a model makes of an optional input it may not give without it.
    mayLack: request.mayLack === true || (request.outputs.length === 0 && inputs.size < rules.inputs.size),
    batchSize,
    shapeKey: rules.hasShapes ? shapeKey(inputs, rules.maxBatchSize > 0) : '',
  }
}

type Refuse = (problem: string) => ServingError

/** `[request id: ...]` precedes what Triton says of a request. */
export function requestPrefix({ id }: Pick<InferRequest, 'id'>): string {
  return `[request id: ${id === '' ? '<id_unknown>' : id}] `
}

/** Triton says this without the request. */
function unexpected(what: 'input' | 'output', name: string, model: string): ServingError {
  return new ServingError('INVALID_ARG', `unexpected inference ${what} '${name}' for model '${model}'`)
}

export function invalid(request: InferRequest, problem: string): ServingError {
  return new ServingError('INVALID_ARG', requestPrefix(request) + problem)
}

function checkCount(inputs: ReadonlyMap<string, Tensor>, rules: RequestRules, refuse: Refuse): void {
  const { model, required } = rules
  const missing = required.filter((name) => !inputs.has(name))
  if (missing.length > 0) {
    const expected =
      required.length === rules.inputs.size
        ? `expected ${required.length} inputs but got`
        : `expected number of inputs between ${required.length} and ${rules.inputs.size} but got`
    throw refuse(
      `${expected} ${inputs.size} inputs for model '${model}'. Got input(s) [${quoted([...inputs.keys()])}], but missing required input(s) [${quoted(missing)}]. Please provide all required input(s).`,
    )
  }
  for (const name of inputs.keys()) if (!rules.inputs.has(name)) throw unexpected('input', name, model)
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(',')
}

function checkBatch(
  tensors: readonly Tensor[],
  { model, maxBatchSize }: RequestRules,
  refuse: Refuse,
): number {
  if (maxBatchSize === 0) return 1
  let batchSize: number | undefined
  for (const { name, shape } of tensors) {
    const [first] = shape
    if (first === undefined)
      throw refuse(`input '${name}' has no shape but model requires batch dimension for '${model}'`)
    batchSize ??= first
    if (first !== batchSize)
      throw refuse(`input '${name}' batch size does not match other inputs for '${model}'`)
  }
  const size = batchSize ?? 1
  if (size < 1 || size > maxBatchSize)
    throw refuse(
      size < 1
        ? `inference request batch-size must be >= 1 for '${model}'`
        : `inference request batch-size must be <= ${maxBatchSize} for '${model}'`,
    )
  return size
}

function checkTensor(tensor: Tensor, rules: RequestRules, refuse: Refuse): void {
  const { model, maxBatchSize } = rules
  const { name, datatype, shape, data } = tensor
  const { datatype: expected, shape: dims, isScalar } = rules.inputs.get(name)!
  if (datatype !== expected)
    throw refuse(
      `inference input '${name}' data-type is '${datatype}', but model '${model}' expects '${expected}'`,
    )
  if (!fits(shape, dims) && !(isScalar && shape.length === 0))
    throw refuse(
      `unexpected shape for input '${name}' for model '${model}'. Expected [${dims.join(',')}], got [${shape.join(',')}]${maxBatchSize > 0 ? dimensionNote : ''}`,
    )
  if (datatype === 'BYTES') {
    if (tensor.checked !== true) atOnce(checkStrings(tensor, refuse))
  } else if (data.byteLength !== elementCount(shape) * elementBytes(datatype))
    throw refuse(
      `input byte size mismatch for input '${name}' for model '${model}'. Expected ${elementCount(shape) * elementBytes(datatype)}, got ${data.byteLength}`,
    )
}

function fits(shape: readonly number[], dims: readonly number[]): boolean {
  if (shape.length !== dims.length) return false
  for (let index = 0; index < dims.length; index++) {
    const size = shape[index]!
    if (size < 0 || (dims[index] !== -1 && dims[index] !== size)) return false
  }
  return true
}

/** The request with the mark that its elements of BYTES have been looked at, in turns with what else the loop does. @throws ServingError */
export async function withStringsChecked(request: InferRequest): Promise<InferRequest> {
  const inputs: Tensor[] = []
  for (const tensor of request.inputs) {
    if (!isLongUnchecked(tensor)) inputs.push(tensor)
    else {
      await inTurns(
        checkStrings(tensor, (problem) => invalid(request, problem)),
        request.signal,
      )
      inputs.push({ ...tensor, checked: true })
    }
  }
  return { ...request, inputs }
}

/** BYTES that no reader of requests has looked at, of a size that would hold the loop: of a step of an ensemble. */
export function isLongUnchecked({ datatype, data, checked }: Tensor): boolean {
  return datatype === 'BYTES' && checked !== true && data.byteLength > mostBytesAtOnce
}

const mostBytesAtOnce = 256 * 1024
const pieceElements = 16 * 1024

/** Elements of BYTES must fill the data exactly. */
function* checkStrings({ name, shape, data }: Tensor, refuse: Refuse): Pieces<void> {
  const expected = elementCount(shape)
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  let at = 0
  for (let index = 0; index < expected; index++) {
    if (at + 4 > data.byteLength)
      throw refuse(`expected ${expected} string elements for inference input '${name}', got ${index}`)
    const end = at + 4 + view.getUint32(at, true)
    if (end > data.byteLength)
      throw refuse(
        `incomplete string data for inference input '${name}', expecting string of length ${end - at - 4} but only ${data.byteLength - at - 4} bytes available`,
      )
    at = end
    if (index % pieceElements === 0) yield
  }
  if (at !== data.byteLength)
    throw refuse(
      `unexpected number of string elements ${expected + 1} for inference input '${name}', expecting ${expected}`,
    )
}

function checkOutputs(request: InferRequest, rules: RequestRules, refuse: Refuse): readonly string[] {
  if (request.outputs.length === 0) return rules.outputs
  const names = new Set<string>()
  for (const { name } of request.outputs) {
    if (names.has(name)) throw refuse(`output '${name}' already exists in request`)
    if (!rules.outputs.includes(name)) throw unexpected('output', name, rules.model)
    names.add(name)
  }
  return [...names]
}

function reshapeInputs(
  inputs: ReadonlyMap<string, Tensor>,
  rules: RequestRules,
): ReadonlyMap<string, Tensor> {
  let changed: Map<string, Tensor> | undefined
  for (const [name, tensor] of inputs) {
    const { input, isScalar } = rules.inputs.get(name)!
    const asScalar = isScalar && tensor.shape.length === 0
    if (input.reshape === undefined && !asScalar) continue
    const given = asScalar ? input.dims : tensor.shape
    const shape = input.reshape
      ? reshaped(given, input.dims, input.reshape.shape, rules.maxBatchSize > 0)
      : given
    changed ??= new Map(inputs)
    changed.set(name, { ...tensor, shape })
  }
  return changed ?? inputs
}

function shapeKey(inputs: ReadonlyMap<string, Tensor>, batched: boolean): string {
  return [...inputs.values()]
    .map(({ name, shape }) => `${name}:${(batched ? shape.slice(1) : shape).join('x')}`)
    .sort()
    .join(';')
}

/**
 * The shape on the other side of a `reshape`: sizes that are -1 in both keep their value, in order.
 *
 * @param shape - with the batch dimension first if `batched`, which stays.
 * @param from - dims that `shape` has.
 * @param to - dims that are wanted.
 */
export function reshaped(
  shape: readonly number[],
  from: readonly number[],
  to: readonly number[],
  batched: boolean,
): readonly number[] {
  const items = batched ? shape.slice(1) : shape
  const free = items.filter((_, index) => from[index] === -1)
  let next = 0
  const inner = to.map((size) => (size === -1 ? (free[next++] ?? 1) : size))
  return batched ? [shape[0] ?? 1, ...inner] : inner
}
