import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { queuedRecord } from '../../src/delivery/outbox-queue.js'
import type { ResultSink } from '../../src/delivery/result-sink.js'
import { nowMs } from '../../src/lifecycle/clock.js'
import { detectionsRecordId, eventTypes } from '../../src/messages/cloud-event.js'
import { createServiceMetrics, type ServiceMetrics } from '../../src/metrics/service-metrics.js'
import { detectionsMessage, textOf, type DetectionsOverrides } from './detections.js'
import { recordingLog } from './silent-log.js'

/** What a webhook was posted. */
export type Posted = Readonly<{
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
}>

type Answer = (posted: Posted, response: ServerResponse, index: number) => void

const takes: Answer = (_, response) => void response.writeHead(204).end()

/** A receiver of webhooks on loopback. It takes all, until `answer` is another. */
export class WebhookReceiver {
  readonly posted: Posted[] = []
  answer: Answer = takes
  connections = 0
  readonly #sockets = new Set<Socket>()

  private constructor(
    readonly server: ReturnType<typeof createHttp>,
    readonly scheme: 'http' | 'https',
  ) {
    server.on('connection', (socket: Socket) => {
      this.connections += 1
      this.#sockets.add(socket)
      socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket))
    })
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('error', () => undefined)
      request.on('end', () => {
        const { method = '', url = '', headers } = request
        const posted = { method, url, headers, body: Buffer.concat(parts).toString() }
        this.posted.push(posted)
        this.answer(posted, response, this.posted.length - 1)
      })
    })
  }

  /** @param tls - PEM of certificate and key, and of a CA that clients must be of. */
  static async start(
    tls?: Readonly<{ cert: string; key: string; ca?: string }>,
    port = 0,
  ): Promise<WebhookReceiver> {
    const server =
      tls === undefined
        ? createHttp()
        : createHttps({ ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: true })
    const receiver = new WebhookReceiver(server, tls === undefined ? 'http' : 'https')
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    return receiver
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  get url(): string {
    return `${this.scheme}://127.0.0.1:${this.port}/hook`
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

/** A sink with what it logged and counted, and a way to give it results. */
export function sinkRig<T extends ResultSink>(
  create: (metrics: ServiceMetrics, log: ReturnType<typeof recordingLog>['log']) => T,
) {
  const metrics = createServiceMetrics()
  const { log, lines } = recordingLog()
  const sink = create(metrics, log)
  let position = 0
  return {
    sink,
    lines,
    metrics,
    accept: (overrides: DetectionsOverrides = {}) => {
      const message = detectionsMessage(overrides)
      const { cameraId, seq, capturedAtMs: timeMs, json: value } = textOf(message)
      const id = detectionsRecordId('e1', 0, message)
      const record = { id, type: eventTypes.detections, cameraId, seq, timeMs, value }
      sink.accept(queuedRecord({ ...record, position: (position += 1) }, false, nowMs()))
    },
    counted: async (result: string): Promise<number> => {
      const { values } = await metrics.sinkRecords.get()
      return values.find(({ labels }) => labels['result'] === result)?.value ?? 0
    },
    rejected: async (): Promise<Record<string, number>> => {
      const { values } = await metrics.sinkRejected.get()
      return Object.fromEntries(values.map(({ labels, value }) => [String(labels['reason']), value]))
    },
  }
}
