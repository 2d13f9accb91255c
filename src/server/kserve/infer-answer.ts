import type { InferResponse, ParameterValue } from '../../serving/infer.js'
import type { Tensor } from '../../serving/tensor.js'
import type { OutputForms } from './infer-body.js'
import { jsonOfTensor } from './json-tensor.js'

/** What goes out, in order. `headerBytes` is the length of the JSON when binary tensors follow it. */
export type InferAnswer = Readonly<{ parts: readonly Uint8Array[]; headerBytes: number | undefined }>

/**
 * The answer to an inference: JSON, then the binary outputs in the order of the JSON. Tensors are not copied.
 *
 * @throws ServingError for types that JSON cannot carry
 */
export function inferAnswer(response: InferResponse, forms: OutputForms): InferAnswer {
  const binary: Uint8Array[] = []
  const outputs = response.outputs.map((output) => {
    const isBinary = forms.byName.get(output.name) ?? forms.otherwise
    if (isBinary && output.data.byteLength > 0) binary.push(output.data)
    return outputJson(output, isBinary)
  })
  const fields = [
    ...(response.id === '' ? [] : [`"id":${JSON.stringify(response.id)}`]),
    `"model_name":${JSON.stringify(response.model)}`,
    `"model_version":${JSON.stringify(response.version)}`,
    ...parametersJson(response.parameters),
    `"outputs":[${outputs.join(',')}]`,
  ]
  const header = Buffer.from(`{${fields.join(',')}}`)
  return { parts: [header, ...binary], headerBytes: binary.length === 0 ? undefined : header.byteLength }
}

function outputJson(output: Tensor, isBinary: boolean): string {
  const data = isBinary
    ? `"parameters":{"binary_data_size":${output.data.byteLength}}`
    : `"data":${jsonOfTensor(output)}`
  const name = JSON.stringify(output.name)
  return `{"name":${name},"datatype":"${output.datatype}","shape":[${output.shape.join(',')}],${data}}`
}

function parametersJson(parameters: Readonly<Record<string, ParameterValue>>): string[] {
  const entries = Object.entries(parameters).map(
    ([name, value]) => `${JSON.stringify(name)}:${valueJson(value)}`,
  )
  return entries.length === 0 ? [] : [`"parameters":{${entries.join(',')}}`]
}

function valueJson(value: ParameterValue): string {
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value)
}
