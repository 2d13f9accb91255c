import type { InferResponse, ParameterValue } from '../../runtime/infer.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { OutputForms } from './infer-body.js'
import type { TensorTexts } from './tensor-texts.js'

/** What goes out, in order. `headerBytes` is the length of the JSON when binary tensors follow it. */
export type InferAnswer = Readonly<{ parts: readonly Uint8Array[]; headerBytes: number | undefined }>

/**
 * The answer to an inference: JSON, then the binary outputs in the order of the JSON. Tensors are not copied.
 *
 * @throws ServingError for types that JSON cannot carry
 */
export async function inferAnswer(
  response: InferResponse,
  forms: OutputForms,
  texts: TensorTexts,
): Promise<InferAnswer> {
  const { outputs, inSharedMemory } = response
  const header = new HeaderParts(`{${headFields(response).join(',')},"outputs":[`)
  const binary: Uint8Array[] = []
  for (const [index, output] of outputs.entries()) {
    const isBinary = forms.byName.get(output.name) ?? forms.otherwise
    header.add(`${index === 0 ? '' : ','}${outputHead(output)}`)
    if (inSharedMemory?.has(output.name) === true) {
      header.add('}')
      continue
    }
    if (isBinary) {
      header.add(`,"parameters":{"binary_data_size":${output.data.byteLength}}}`)
      if (output.data.byteLength > 0) binary.push(output.data)
      continue
    }
    const text = texts.of(output, outputs)
    header.add(',"data":')
    header.addBytes(text instanceof Uint8Array ? text : await text)
    header.add('}')
  }
  header.add(']}')
  const parts = header.parts()
  const headerBytes = parts.reduce((bytes, part) => bytes + part.byteLength, 0)
  return { parts: [...parts, ...binary], headerBytes: binary.length === 0 ? undefined : headerBytes }
}

/** Texts and bytes in their order; small ones are joined. */
class HeaderParts {
  readonly #parts: Uint8Array[] = []
  #text: string

  constructor(start: string) {
    this.#text = start
  }

  add(text: string): void {
    this.#text += text
  }

  addBytes(bytes: Uint8Array): void {
    this.#flush()
    this.#parts.push(bytes)
  }

  parts(): readonly Uint8Array[] {
    this.#flush()
    return joined(this.#parts)
  }

  #flush(): void {
    if (this.#text !== '') this.#parts.push(Buffer.from(this.#text))
    this.#text = ''
  }
}

/** Each part is an entry of a system call, which costs more than to copy a little. */
function joined(parts: readonly Uint8Array[]): readonly Uint8Array[] {
  const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0)
  return bytes <= mostJoinedBytes ? [Buffer.concat(parts, bytes)] : parts
}

const mostJoinedBytes = 256 * 1024

function headFields(response: InferResponse): string[] {
  return [
    ...(response.id === '' ? [] : [`"id":${JSON.stringify(response.id)}`]),
    `"model_name":${JSON.stringify(response.model)}`,
    `"model_version":${JSON.stringify(response.version)}`,
    ...parametersJson(response.parameters),
  ]
}

function outputHead({ name, datatype, shape }: Tensor): string {
  return `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(',')}]`
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
