import { inferMessage } from '../../backends/kserve/kserve-messages.js'
import { readAnswer } from '../../backends/kserve/infer-answer.js'
import { decodeMessage, encodeMessage, grpcRoot, type Message } from '../../kserve/grpc-schema.js'
import type { Tensor } from '../../tensors/tensor.js'
import { ServerRefusalError } from './client-errors.js'
import { GrpcChannel } from './grpc-channel.js'
import { framed, GrpcLane } from './grpc-lane.js'
import type { InferLane, LaneAnswer, PreparedRequest } from './infer-lane.js'
import { KServeClient, type ModelRef, type ServerMetadata } from './kserve-client.js'
import type { ServerTrust } from './server-socket.js'
import type { ServerTarget } from './server-url.js'

/** Lanes that share a connection, as with Triton's own clients. */
const lanesPerChannel = 6

/** The protocol over gRPC. */
export class GrpcKServeClient extends KServeClient {
  readonly #channels = new Set<GrpcChannel>()
  /** For what is no inference. */
  readonly #control: GrpcChannel

  constructor(
    target: ServerTarget,
    readonly trust: ServerTrust,
    readonly token: string | undefined,
  ) {
    super(target)
    this.#control = new GrpcChannel(target, trust, token)
  }

  async ready(): Promise<boolean> {
    const { ready } = await this.#call('ServerReady', {})
    return ready === true
  }

  async serverMetadata(): Promise<ServerMetadata> {
    return (await this.#call('ServerMetadata', {})) as ServerMetadata
  }

  async modelReady(model: ModelRef): Promise<boolean> {
    try {
      const { ready } = await this.#call('ModelReady', named(model))
      return ready === true
    } catch (error) {
      if (error instanceof ServerRefusalError) return false
      throw error
    }
  }

  override prepare(
    model: ModelRef,
    inputs: readonly Tensor[],
    outputs: readonly string[] = [],
  ): PreparedRequest {
    const ref = { model: model.name, version: model.version ?? '' }
    const message = inferMessage(ref, { inputs, outputs, sequence: undefined })
    return framed(encodeMessage(grpcRoot.lookupType('inference.ModelInferRequest'), message))
  }

  override lane(): InferLane {
    const open = [...this.#channels].find(({ lanes }) => lanes > 0 && lanes < lanesPerChannel)
    const channel = open ?? new GrpcChannel(this.target, this.trust, this.token)
    this.#channels.add(channel)
    return new GrpcLane(channel, 'ModelInfer')
  }

  override close(): void {
    this.#control.close()
    for (const channel of this.#channels) channel.close()
  }

  protected override describeModel(model: ModelRef): Promise<Message> {
    return this.#call('ModelMetadata', named(model))
  }

  protected override async describeConfig(model: ModelRef): Promise<Message> {
    return (await this.#call('ModelConfig', named(model)))['config'] as Message
  }

  protected override describeStatistics(model: ModelRef): Promise<Message> {
    return this.#call('ModelStatistics', named(model))
  }

  protected override tensorsIn({ body }: LaneAnswer, outputs: readonly string[]): readonly Tensor[] {
    return readAnswer(body, outputs, { name: '', model: '', maxResponseBytes: Infinity })
  }

  async #call(method: string, message: Message): Promise<Message> {
    const type = (side: string) => grpcRoot.lookupType(`inference.${method}${side}`)
    const request = framed(encodeMessage(type('Request'), message))
    const { body } = await this.exchange(new GrpcLane(this.#control, method), request)
    return this.understood(() => decodeMessage(type('Response'), body))
  }
}

function named({ name, version = '' }: ModelRef): Message {
  return { name, version }
}
