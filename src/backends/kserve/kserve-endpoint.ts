import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { encodeMessage, grpcRoot, type Message } from '../../kserve/grpc-schema.js'
import { grpcWindowBytes } from '../../kserve/grpc-window.js'
import { ServingError } from '../../tensors/serving-error.js'
import { answerLimit, isBeyond, tooLargeError } from './kserve-errors.js'
import type { RemoteMethod } from './kserve-messages.js'
import type { KserveSettings } from './kserve-settings.js'

/** One address of a remote server. */
export class KserveEndpoint {
  /** Whether it answered last time. */
  healthy = true
  inFlight = 0
  readonly #client: Client
  readonly #metadata = new Metadata()

  constructor(
    readonly address: string,
    readonly settings: KserveSettings,
  ) {
    const { tls, ca, token } = settings
    const channel: ChannelCredentials = tls
      ? credentials.createSsl(ca === undefined ? null : Buffer.from(ca))
      : credentials.createInsecure()
    this.#client = new Client(address, channel, {
      'grpc.max_receive_message_length': answerLimit(settings),
      'grpc.max_send_message_length': -1,
      'grpc-node.flow_control_window': grpcWindowBytes,
      'grpc.keepalive_time_ms': 30_000,
      'grpc.keepalive_timeout_ms': 10_000,
      // A server that comes back is found within a probe.
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 5_000,
    })
    if (token !== undefined) this.#metadata.set('authorization', `Bearer ${token}`)
  }

  /** @throws ServiceError of gRPC; ServingError for answers that are too large or no tensors; Error for other answers */
  async call<Answer>(
    method: RemoteMethod<Answer>,
    message: Message,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    this.inFlight += 1
    try {
      return read(method, await this.#call(method.name, message, deadlineMs, signal))
    } catch (error) {
      const beyond = isBeyond(this.settings, error)
      throw beyond === undefined ? error : tooLargeError(this.settings, beyond.bytes)
    } finally {
      this.inFlight -= 1
    }
  }

  close(): void {
    this.#client.close()
  }

  #call(
    method: string,
    message: Message,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Buffer> {
    const request = grpcRoot.lookupType(`inference.${method}Request`)
    return new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest<Message, Buffer>(
        `/inference.GRPCInferenceService/${method}`,
        (value) => encodeMessage(request, value),
        (bytes) => bytes,
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
      if (signal?.aborted === true) cancel()
    })
  }
}

function read<Answer>(method: RemoteMethod<Answer>, bytes: Buffer): Answer {
  try {
    return method.read(bytes)
  } catch (error) {
    if (error instanceof ServingError) throw error
    const problem = error instanceof Error ? error.message : String(error)
    throw new Error(`Response message parsing error: ${problem}`, { cause: error })
  }
}
