import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import type protobuf from 'protobufjs'
import { decodeMessage, encodeMessage, grpcRoot, type Message } from '../../protocol/grpc-schema.js'
import type { KserveSettings } from './kserve-settings.js'

export type RemoteMethod = 'ModelInfer' | 'ModelReady' | 'ModelMetadata' | 'ModelConfig'

/** One address of a remote server. */
export class KserveEndpoint {
  /** Whether it answered last time. */
  healthy = true
  inFlight = 0
  readonly #client: Client
  readonly #metadata = new Metadata()

  constructor(
    readonly address: string,
    settings: KserveSettings,
  ) {
    const channel: ChannelCredentials = settings.tls
      ? credentials.createSsl(settings.ca ?? null)
      : credentials.createInsecure()
    this.#client = new Client(address, channel, {
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      'grpc.keepalive_time_ms': 30_000,
      'grpc.keepalive_timeout_ms': 10_000,
      // A server that comes back is found within a probe.
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 5_000,
    })
    if (settings.token !== undefined) this.#metadata.set('authorization', `Bearer ${settings.token}`)
  }

  /** @throws ServiceError of gRPC */
  async call(
    method: RemoteMethod,
    message: Message,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Message> {
    this.inFlight += 1
    try {
      return await this.#call(method, message, deadlineMs, signal)
    } finally {
      this.inFlight -= 1
    }
  }

  close(): void {
    this.#client.close()
  }

  #call(
    method: RemoteMethod,
    message: Message,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Message> {
    const request = grpcRoot.lookupType(`inference.${method}Request`)
    const response: protobuf.Type = grpcRoot.lookupType(`inference.${method}Response`)
    return new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest<Message, Message>(
        `/inference.GRPCInferenceService/${method}`,
        (value) => encodeMessage(request, value),
        (bytes) => decodeMessage(response, bytes),
        message,
        this.#metadata,
        { deadline: new Date(Date.now() + deadlineMs) },
        (error: ServiceError | null, answer) => {
          signal?.removeEventListener('abort', cancel)
          if (error !== null || answer === undefined) reject(error ?? new Error('no answer'))
          else resolve(answer)
        },
      )
      const cancel = () => call.cancel()
      signal?.addEventListener('abort', cancel, { once: true })
    })
  }
}
