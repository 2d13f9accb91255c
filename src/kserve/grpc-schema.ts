import protobuf from 'protobufjs'
import { modelConfigProto } from '../repository/model-config-schema.js'
import { healthProto, serviceProto } from './service-schema.js'

/** Every message and service that this server speaks. */
export const grpcRoot = new protobuf.Root()
for (const text of [modelConfigProto, serviceProto, healthProto])
  protobuf.parse(text, grpcRoot, { keepCase: true })
grpcRoot.resolveAll()

export const inferenceService = grpcRoot.lookupService('inference.GRPCInferenceService')
export const healthService = grpcRoot.lookupService('grpc.health.v1.Health')

export type Message = Readonly<Record<string, unknown>>

/** Fields that were not sent have their defaults; 64-bit numbers are numbers, not exact past 2^53. */
export function decodeMessage(type: protobuf.Type, bytes: Uint8Array): Message {
  return type.toObject(type.decode(bytes), {
    longs: Number,
    enums: String,
    defaults: true,
    oneofs: true,
  })
}

export function encodeMessage(type: protobuf.Type, message: Message): Buffer {
  const bytes = type.encode(type.fromObject(message)).finish()
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
