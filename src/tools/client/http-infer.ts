import { GantryError } from '../../errors.js'
import { type Datatype, arrayOf, elementBytes, isArrayDatatype } from '../../tensors/element-type.js'
import { elementsOf, packStrings, stringsOf } from '../../tensors/elements.js'
import { dataOf, elementCount, type Tensor } from '../../tensors/tensor.js'
import { datatypeNamed } from '../../backends/kserve/kserve-messages.js'
import { headerOf } from './http-answer-reader.js'
import type { LaneAnswer } from './infer-lane.js'

/** How tensors travel over HTTP: by the binary extension, or in the JSON, which every server understands. */
export type WireForm = 'binary' | 'json'

export type InferBody = Readonly<{ contentType: string; jsonBytes: number; chunks: readonly Uint8Array[] }>

/** A tensor that the form cannot carry. */
export class TensorFormError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint = 'Ask by gRPC, or a server with the extension for binary tensors.'
  constructor(detail: string) {
    super(detail)
    this.name = 'TensorFormError'
  }
}

/**
 * The body of an inference request.
 *
 * @param outputs - names of those wanted; none: all.
 * @throws TensorFormError for half floats in JSON, which has no way to write them.
 */
export function inferBody(inputs: readonly Tensor[], outputs: readonly string[], form: WireForm): InferBody {
  const binary = form === 'binary'
  const json = `{"inputs":[${inputs.map((tensor) => inputJson(tensor, binary)).join(',')}]${outputsJson(outputs, binary)}}`
  const head = Buffer.from(json)
  return {
    contentType: binary ? 'application/octet-stream' : 'application/json',
    jsonBytes: head.byteLength,
    chunks: binary ? [head, ...inputs.map(({ data }) => data)] : [head],
  }
}

function inputJson({ name, datatype, shape, data }: Tensor, binary: boolean): string {
  const described = `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(',')}]`
  return binary
    ? `${described},"parameters":{"binary_data_size":${data.byteLength}}}`
    : `${described},"data":[${elementTexts(datatype, data)}]}`
}

function outputsJson(outputs: readonly string[], binary: boolean): string {
  if (outputs.length === 0) return binary ? ',"parameters":{"binary_data_output":true}' : ''
  const parameters = binary ? ',"parameters":{"binary_data":true}' : ''
  return `,"outputs":[${outputs.map((name) => `{"name":${JSON.stringify(name)}${parameters}}`).join(',')}]`
}

function elementTexts(datatype: Datatype, data: Uint8Array): string {
  if (datatype === 'BYTES')
    return Array.from(stringsOf(data), (bytes) => JSON.stringify(Buffer.from(bytes).toString())).join(',')
  if (datatype === 'BOOL') return Array.from(data, (value) => value !== 0).join(',')
  if (!isArrayDatatype(datatype) || datatype === 'FP16')
    throw new TensorFormError(`${datatype} tensors cannot be written in JSON`)
  return elementsOf(datatype, data).join(',')
}

type OutputJson = Readonly<{
  name: string
  datatype: string
  shape: readonly number[]
  parameters?: Readonly<{ binary_data_size?: number }>
  data?: readonly unknown[]
}>

/**
 * The outputs of an answer; binary ones are views of its body.
 *
 * @throws Error that says what is no answer of the protocol.
 */
export function answeredTensors({ head, body }: LaneAnswer): readonly Tensor[] {
  const jsonBytes = Number(headerOf(head, 'inference-header-content-length') ?? body.byteLength)
  const { outputs } = JSON.parse(body.toString('utf8', 0, jsonBytes)) as { outputs?: readonly OutputJson[] }
  if (!Array.isArray(outputs)) throw new Error('it has no outputs')
  let at = jsonBytes
  return (outputs as readonly OutputJson[]).map((output) => {
    const { name, shape } = output
    const datatype = datatypeNamed(output.datatype)
    if (datatype === undefined) throw new Error(`output '${name}' has datatype '${output.datatype}'`)
    const size = output.parameters?.binary_data_size
    const data =
      size === undefined ? listedData(datatype, output.data ?? []) : body.subarray(at, (at += size))
    if (at > body.byteLength) throw new Error(`output '${name}' is cut off`)
    if (datatype !== 'BYTES' && data.byteLength !== elementCount(shape) * elementBytes(datatype))
      throw new Error(`output '${name}' has ${data.byteLength} bytes for the shape [${shape.join(', ')}]`)
    return { name, datatype, shape, data }
  })
}

/** Elements of a list, which may be nested, as the bytes of a tensor. @throws Error for half floats, which have no list. */
export function listedData(datatype: Datatype, list: readonly unknown[]): Uint8Array {
  const flat: readonly unknown[] = list.some(Array.isArray) ? list.flat(Infinity) : list
  if (datatype === 'BYTES') return packStrings(flat.map((text) => Buffer.from(String(text))))
  if (!isArrayDatatype(datatype) || datatype === 'FP16') throw new Error(`${datatype} cannot be listed`)
  const kind = arrayOf(datatype)
  if (kind === BigInt64Array || kind === BigUint64Array)
    return dataOf(new kind(flat.map((value) => BigInt(value as number))))
  return dataOf(new (kind as Float32ArrayConstructor)(flat.map(Number)))
}
