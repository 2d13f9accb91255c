import { type Datatype, datatypes } from '../../datatype.js'
import type { Execution } from '../../backend.js'
import { packStrings } from '../../elements.js'
import { dataOf } from '../../numeric-data.js'
import type { Message } from '../../protocol/grpc-schema.js'
import { ServingError } from '../../serving-error.js'
import type { Tensor, TensorSpec } from '../../tensor.js'
import type { KserveSettings } from './kserve-settings.js'

type TensorMessage = Readonly<{
  name: string
  datatype: string
  shape: readonly number[]
  contents?: Readonly<Record<string, readonly unknown[]>>
}>

/** `ModelInferRequest` with raw contents: the bytes of the tensors as they are. */
export function inferMessage(
  { model, version }: KserveSettings,
  { inputs, outputs, sequence }: Execution,
): Message {
  const tensors = [...inputs.values()]
  return {
    model_name: model,
    model_version: version,
    inputs: tensors.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
    outputs: outputs.map((name) => ({ name })),
    raw_input_contents: tensors.map(({ data }) => data),
    ...(sequence === undefined
      ? {}
      : {
          parameters: {
            sequence_id: { string_param: sequence.id },
            sequence_start: { bool_param: sequence.start },
            sequence_end: { bool_param: sequence.end },
          },
        }),
  }
}

/** The outputs of a `ModelInferResponse`. @throws ServingError for contents that no tensor can have */
export function outputTensors(message: Message): readonly Tensor[] {
  const outputs = message.outputs as readonly TensorMessage[]
  const raw = message.raw_output_contents as readonly Uint8Array[]
  return outputs.map((output, index): Tensor => {
    const datatype = datatypeNamed(output.datatype)
    if (datatype === undefined)
      throw new ServingError(
        'INTERNAL',
        `remote output '${output.name}' has datatype '${output.datatype}'`,
        'BACKEND',
      )
    const data = raw[index] ?? typedContents(datatype, output.contents ?? {})
    return { name: output.name, datatype, shape: output.shape, data }
  })
}

/** Tensors of a `ModelMetadataResponse`, `inputs` or `outputs`. */
export function metadataTensors(message: Message, side: 'inputs' | 'outputs'): readonly TensorSpec[] {
  return (message[side] as readonly TensorMessage[]).flatMap(({ name, datatype, shape }) => {
    const known = datatypeNamed(datatype)
    return known === undefined ? [] : [{ name, datatype: known, shape }]
  })
}

function datatypeNamed(name: string): Datatype | undefined {
  return datatypes.find((known) => known === name)
}

/** Servers other than Triton may answer with lists of numbers. */
function typedContents(
  datatype: Datatype,
  contents: Readonly<Record<string, readonly unknown[]>>,
): Uint8Array {
  const numbers = (field: string) => (contents[field] ?? []).map(Number)
  switch (datatype) {
    case 'FP32':
      return dataOf(Float32Array.from(numbers('fp32_contents')))
    case 'FP64':
      return dataOf(Float64Array.from(numbers('fp64_contents')))
    case 'BOOL':
      return Uint8Array.from(numbers('bool_contents'))
    case 'INT8':
      return dataOf(Int8Array.from(numbers('int_contents')))
    case 'INT16':
      return dataOf(Int16Array.from(numbers('int_contents')))
    case 'INT32':
      return dataOf(Int32Array.from(numbers('int_contents')))
    case 'INT64':
      return dataOf(BigInt64Array.from(numbers('int64_contents'), BigInt))
    case 'UINT8':
      return Uint8Array.from(numbers('uint_contents'))
    case 'UINT16':
      return dataOf(Uint16Array.from(numbers('uint_contents')))
    case 'UINT32':
      return dataOf(Uint32Array.from(numbers('uint_contents')))
    case 'UINT64':
      return dataOf(BigUint64Array.from(numbers('uint64_contents'), BigInt))
    case 'BYTES':
      return packStrings((contents.bytes_contents ?? []) as readonly Uint8Array[])
    default:
      throw new ServingError(
        'INTERNAL',
        `a remote output of datatype '${datatype}' has no raw contents`,
        'BACKEND',
      )
  }
}
