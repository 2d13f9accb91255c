import { Client, credentials } from '@grpc/grpc-js'
import { decodeMessage, grpcRoot, type Message } from '../../src/kserve/grpc-schema.js'
import { buildOnnx } from './onnx-builder.js'
import { addModel } from './onnx-models.js'
import { protoField, protoVarint } from './raw-proto.js'
import { echoOnnx } from './model-repository.js'

/**
 * Adds `tiny`, `echo_text`, `echo_numbers`, `count_texts`, which answers with how many texts it was given, and `zeros`, which answers with
 * as many as it is told.
 */
export function addLargeModels(dir: string): void {
  const config = 'max_batch_size: 0 instance_group { kind: KIND_CPU count: 1 }'
  addModel(dir, 'tiny', { onnx: echoOnnx('float32', [4]), config })
  addModel(dir, 'echo_text', { onnx: echoOnnx('string', ['n']), config })
  addModel(dir, 'echo_numbers', { onnx: echoOnnx('float32', ['n']), config })
  const counting = buildOnnx({
    inputs: [{ name: 'in0', type: 'string', shape: ['n'] }],
    outputs: [{ name: 'out0', type: 'int64', shape: [1] }],
    nodes: [{ op: 'Shape', inputs: ['in0'], outputs: ['out0'] }],
  })
  addModel(dir, 'count_texts', { onnx: counting, config })
  const zeros = buildOnnx({
    inputs: [{ name: 'in0', type: 'int64', shape: [1] }],
    outputs: [{ name: 'out0', type: 'float32', shape: ['n'] }],
    nodes: [{ op: 'ConstantOfShape', inputs: ['in0'], outputs: ['out0'] }],
  })
  addModel(dir, 'zeros', { onnx: zeros, config })
}

/** `count` times the same element, with commas between, without an object for each. */
function repeated(element: string, count: number): Buffer<ArrayBuffer> {
  const all = Buffer.alloc((element.length + 1) * count, `${element},`)
  return all.subarray(0, all.byteLength - 1)
}

/** The body of a request with one input whose `data` is one element many times. */
export function jsonOf(datatype: string, element: string, count: number, more = ''): Buffer<ArrayBuffer> {
  const start = `{"inputs":[{"name":"in0","datatype":"${datatype}","shape":[${count}],"data":[`
  return Buffer.concat([Buffer.from(start), repeated(element, count), Buffer.from(`]}]${more}}`)])
}

/** `ModelInferRequest` with one input of `count` texts in typed contents. */
export function textsByGrpc(model: string, count: number): Buffer {
  const element = protoField(8, 'A')
  const input = Buffer.concat([
    protoField(1, 'in0'),
    protoField(2, 'BYTES'),
    protoField(3, protoVarint(count)),
    protoField(5, Buffer.alloc(element.byteLength * count, element)),
  ])
  return Buffer.concat([protoField(1, model), protoField(5, input)])
}

/** `ModelInferRequest` for `zeros`. */
export function zerosByGrpc(count: number): Buffer {
  const number = Buffer.alloc(8)
  number.writeBigInt64LE(BigInt(count))
  const input = Buffer.concat([protoField(1, 'in0'), protoField(2, 'INT64'), protoField(3, protoVarint(1))])
  return Buffer.concat([protoField(1, 'zeros'), protoField(5, input), protoField(7, number)])
}

/** Sends a message as it is. Rejects with the ServiceError of the call. */
export function inferByGrpc(address: string, message: Buffer): Promise<Message> {
  const type = grpcRoot.lookupType('inference.ModelInferResponse')
  const client = new Client(address, credentials.createInsecure(), { 'grpc.max_receive_message_length': -1 })
  return new Promise<Message>((resolve, reject) => {
    client.makeUnaryRequest<Buffer, Message>(
      '/inference.GRPCInferenceService/ModelInfer',
      (bytes) => bytes,
      (bytes) => decodeMessage(type, bytes),
      message,
      (error, answer) => (error ? reject(error) : resolve(answer ?? {})),
    )
  }).finally(() => client.close())
}

/** `count` empty texts in the binary form. */
export function binaryTextsBody(count: number): Readonly<{ body: Buffer; headerBytes: number }> {
  const bytes = Buffer.alloc(4 * count)
  const header = Buffer.from(
    `{"inputs":[{"name":"in0","datatype":"BYTES","shape":[${count}],"parameters":{"binary_data_size":${bytes.byteLength}}}]}`,
  )
  return { body: Buffer.concat([header, bytes]), headerBytes: header.byteLength }
}

/** A load request with a file of so many bytes that is no model. */
export function largeLoadBody(bytes: number): Buffer {
  const file = Buffer.alloc(bytes, 7).toString('base64')
  return Buffer.from(
    `{"parameters":{"config":"{\\"backend\\":\\"onnxruntime\\"}","file:1/model.onnx":"${file}"}}`,
  )
}
