import { Client, credentials, Metadata, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js'
import type { ClientTls } from './tls-client.js'
import { decodeMessage, encodeMessage, grpcRoot, type Message } from '../../src/kserve/grpc-schema.js'

/** A client of the public schema: every message through protobufjs, none of the server's own readers and writers. */
export class GrpcClient {
  readonly #client: Client

  constructor(
    port: number,
    readonly metadata: Readonly<Record<string, string>> = {},
    trust?: ClientTls,
    host = '127.0.0.1',
  ) {
    const bytes = (pem: string | undefined) => (pem === undefined ? null : Buffer.from(pem))
    const how = trust
      ? credentials.createSsl(bytes(trust.ca), bytes(trust.key), bytes(trust.cert))
      : credentials.createInsecure()
    // A subchannel of its own: others may hold a connection with another certificate.
    this.#client = new Client(`${host}:${port}`, how, { 'grpc.use_local_subchannel_pool': 1 })
  }

  /** Rejects with the ServiceError of the call. */
  call(method: string, request: Message, options: { deadlineMs?: number } = {}): Promise<Message> {
    const { path, requestType, responseType } = methodOf(method)
    const deadline = options.deadlineMs === undefined ? {} : { deadline: Date.now() + options.deadlineMs }
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest<Message, Message>(
        path,
        (message) => encodeMessage(requestType, message),
        (bytes) => decodeMessage(responseType, bytes),
        request,
        this.#metadata(),
        deadline,
        (error, answer) => (error ? reject(error) : resolve(answer ?? {})),
      )
    })
  }

  stream(method: string): ClientDuplexStream<Message, Message> {
    const { path, requestType, responseType } = methodOf(method)
    return this.#client.makeBidiStreamRequest<Message, Message>(
      path,
      (message) => encodeMessage(requestType, message),
      (bytes) => decodeMessage(responseType, bytes),
      this.#metadata(),
    )
  }

  close(): void {
    this.#client.close()
  }

  #metadata(): Metadata {
    const metadata = new Metadata()
    for (const [name, value] of Object.entries(this.metadata)) metadata.set(name, value)
    return metadata
  }
}

export type { ServiceError }

/** `ModelInfer`, or with its service: `grpc.health.v1.Health/Check`. */
function methodOf(method: string) {
  const [service, name] = method.includes('/')
    ? method.split('/')
    : ['inference.GRPCInferenceService', method]
  const found = grpcRoot.lookupService(service ?? '').methods[name ?? '']
  if (!found?.resolvedRequestType || !found.resolvedResponseType) throw new Error(`no method ${method}`)
  return {
    path: `/${service}/${name}`,
    requestType: found.resolvedRequestType,
    responseType: found.resolvedResponseType,
  }
}
