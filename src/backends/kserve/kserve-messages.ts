import { type Datatype, datatypes } from '../../tensors/element-type.js'
import type { TensorSpec } from '../../tensors/tensor.js'
import { decodeMessage, grpcRoot, type Message } from '../../kserve/grpc-schema.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { RemoteRequest } from './kserve-protocol.js'
import type { KserveSettings } from './kserve-settings.js'

/** A call of the service, and how its answer is read. */
export type RemoteMethod<Answer> = Readonly<{
  name: 'ModelInfer' | 'ModelReady' | 'ModelMetadata' | 'ModelConfig'
  /** @throws for bytes that are no such answer */
  read(bytes: Buffer): Answer
}>

export type RemoteTensors = Readonly<{ inputs: readonly TensorSpec[]; outputs: readonly TensorSpec[] }>

/** What clients of gRPC take by default. Of what is no tensor each field becomes an object. */
const mostDescriptionBytes = 4 * 1024 ** 2
/** They go to the loop that serves. */
const mostTensors = 4_096

export const modelReady: RemoteMethod<boolean> = {
  name: 'ModelReady',
  read: (bytes) => decoded('ModelReady', bytes).ready === true,
}

/** `max_batch_size` of the model; 0 without one. */
export const modelConfig: RemoteMethod<number> = {
  name: 'ModelConfig',
  read(bytes) {
    const { config } = decoded('ModelConfig', bytes)
    return (config as { max_batch_size?: number } | null)?.max_batch_size ?? 0
  },
}

export const modelMetadata: RemoteMethod<RemoteTensors> = {
  name: 'ModelMetadata',
  read(bytes) {
    const message = decoded('ModelMetadata', bytes)
    return { inputs: tensors(message, 'inputs'), outputs: tensors(message, 'outputs') }
  },
}

/** `ModelInferRequest` with raw contents: the bytes of the tensors as they are. */
export function inferMessage(
  { model, version }: Pick<KserveSettings, 'model' | 'version'>,
  { inputs, outputs, sequence }: RemoteRequest,
): Message {
  return {
    model_name: model,
    model_version: version,
    inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
    outputs: outputs.map((name) => ({ name })),
    raw_input_contents: inputs.map(({ data }) => data),
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

export function datatypeNamed(name: string): Datatype | undefined {
  return datatypes.find((known) => known === name)
}

function decoded(method: string, bytes: Buffer): Message {
  if (bytes.byteLength > mostDescriptionBytes)
    throw new ServingError(
      'INTERNAL',
      `the answer to ${method} has ${bytes.byteLength} bytes, more than ${mostDescriptionBytes}`,
      'BACKEND',
    )
  return decodeMessage(grpcRoot.lookupType(`inference.${method}Response`), bytes)
}

type TensorMessage = Readonly<{ name: string; datatype: string; shape: readonly number[] }>

function tensors(message: Message, side: 'inputs' | 'outputs'): readonly TensorSpec[] {
  const listed = message[side] as readonly TensorMessage[]
  if (listed.length > mostTensors)
    throw new ServingError(
      'INTERNAL',
      `the model has ${listed.length} ${side}, more than ${mostTensors}`,
      'BACKEND',
    )
  return listed.flatMap(({ name, datatype, shape }) => {
    const known = datatypeNamed(datatype)
    return known === undefined ? [] : [{ name, datatype: known, shape }]
  })
}
