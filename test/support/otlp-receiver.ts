import { Server, ServerCredentials, type sendUnaryData, type ServerUnaryCall } from '@grpc/grpc-js'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { decodeExport } from './otlp-proto.js'

/** A span as a collector gets it. */
export type ReceivedSpan = Readonly<{
  name: string
  kind: number
  traceId: string
  spanId: string
  /** Empty: it begins the trace. */
  parentSpanId: string
  traceState: string
  /** Milliseconds since the epoch. */
  startMs: number
  endMs: number
  attributes: Readonly<Record<string, unknown>>
  links: readonly Readonly<{ traceId: string; spanId: string }>[]
  error: string | undefined
  /** Of whoever sent it. */
  resource: Readonly<Record<string, unknown>>
}>

type Tls = Readonly<{ cert: string; key: string; ca?: string }>

/** Takes spans by OTLP over HTTP and gRPC on loopback, reading them by the official schema. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = []
  /** Of each request that came, of both protocols. */
  readonly headers: IncomingHttpHeaders[] = []
  readonly paths: string[] = []
  /** What HTTP is answered. */
  status = 200
  readonly #sockets = new Set<Socket>()

  private constructor(
    readonly http: ReturnType<typeof createServer>,
    readonly grpc: Server,
    readonly grpcPort: number,
    readonly scheme: 'http' | 'https',
  ) {}

  /** @param tls - PEM; with `ca`, clients need a certificate of it. @param port - of HTTP; 0 is any. */
  static async start(tls?: Tls, port = 0): Promise<OtlpReceiver> {
    const answer: RequestListener = (request, response) => {
      const parts: Buffer[] = []
      request.on('error', () => undefined)
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const body = Buffer.concat(parts)
        receiver.headers.push(request.headers)
        receiver.paths.push(`${request.method} ${request.url}`)
        if (receiver.status === 200)
          receiver.#take(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body)
        // An empty answer is one in protobuf.
        response.writeHead(receiver.status, { 'content-type': 'application/x-protobuf' }).end()
      })
    }
    const needsOurs = tls?.ca !== undefined
    const http =
      tls === undefined ? createServer(answer) : createHttps({ ...tls, requestCert: needsOurs }, answer)
    const grpc = new Server()
    grpc.addService(
      {
        Export: {
          path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
          requestStream: false,
          responseStream: false,
          requestDeserialize: (bytes: Buffer) => bytes,
          requestSerialize: (bytes: Buffer) => bytes,
          responseDeserialize: (bytes: Buffer) => bytes,
          responseSerialize: (bytes: Buffer) => bytes,
        },
      },
      {
        Export: (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) => {
          receiver.headers.push(call.metadata.getMap() as IncomingHttpHeaders)
          receiver.paths.push(call.getPath())
          receiver.#take(call.request)
          done(null, Buffer.alloc(0))
        },
      },
    )
    const credentials =
      tls === undefined
        ? ServerCredentials.createInsecure()
        : ServerCredentials.createSsl(
            tls.ca === undefined ? null : Buffer.from(tls.ca),
            [{ cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) }],
            needsOurs,
          )
    const grpcPort = await new Promise<number>((resolve, reject) =>
      grpc.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
    )
    const receiver = new OtlpReceiver(http, grpc, grpcPort, tls === undefined ? 'http' : 'https')
    http.on('connection', (socket: Socket) => {
      receiver.#sockets.add(socket)
      socket.on('error', () => undefined).once('close', () => receiver.#sockets.delete(socket))
    })
    await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve))
    return receiver
  }

  get port(): number {
    return (this.http.address() as AddressInfo).port
  }

  get url(): string {
    return `${this.scheme}://127.0.0.1:${this.port}`
  }

  get grpcUrl(): string {
    return `${this.scheme}://127.0.0.1:${this.grpcPort}`
  }

  /** By their traces, in the order of their starts. */
  traces(): readonly (readonly ReceivedSpan[])[] {
    return [...new Set(this.spans.map(({ traceId }) => traceId))].map((id) =>
      this.spans.filter(({ traceId }) => traceId === id).sort((a, b) => a.startMs - b.startMs),
    )
  }

  async stop(): Promise<void> {
    this.grpc.forceShutdown()
    const closed = new Promise((resolve) => this.http.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #take(bytes: Buffer): void {
    this.spans.push(...decodeExport(bytes))
  }
}

/** `name (name, name (name))`: a trace as it nests, in the order of starts. @throws for a span whose parent is not there */
export function shapeOf(spans: readonly ReceivedSpan[], rootParent = ''): string {
  const known = new Set([rootParent, ...spans.map(({ spanId }) => spanId)])
  const stray = spans.find(({ parentSpanId }) => !known.has(parentSpanId))
  if (stray !== undefined) throw new Error(`the parent of ${stray.name} is missing`)
  const inside = (parent: string): string =>
    spans
      .filter(({ parentSpanId }) => parentSpanId === parent)
      .toSorted((a, b) => a.startMs - b.startMs || a.endMs - b.endMs)
      .map(({ name, spanId }) => {
        const children = inside(spanId)
        return children === '' ? name : `${name} (${children})`
      })
      .join(', ')
  return inside(rootParent)
}

/** Spans that are not within the time of their parents, with how far they stick out. @param slackMs - of two clocks */
export function outsideParents(spans: readonly ReceivedSpan[], slackMs = 0.01): readonly string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  return spans.flatMap(({ name, parentSpanId, startMs, endMs }) => {
    const parent = byId.get(parentSpanId)
    if (endMs < startMs) return [`${name} ends before it starts`]
    if (parent === undefined) return []
    const [before, after] = [parent.startMs - startMs, endMs - parent.endMs]
    return before > slackMs || after > slackMs ? [`${name} of ${parent.name}: ${before}, ${after} ms`] : []
  })
}
