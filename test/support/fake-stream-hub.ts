import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { parseDetectionsJson } from '../../src/messages/detections-json.js'
import {
  clientMessageSchema,
  streamProtocol,
  type ServerMessage,
  type Subscription,
} from '../../src/messages/stream-protocol.js'
import { ClientAcceptor } from '../../src/processes/stream/client-acceptor.js'
import type { StreamUpstream, UpgradeRequest } from '../../src/api/stream-upstream.js'
import type { PublishedText, StreamHub } from '../../src/delivery/websocket/stream-hub.js'

type Client = { socket: WebSocket; wants: Subscription | undefined }

/** Speaks `gantry.v1` plainly: no queue, no limits, no replay. Keeps what clients asked for, so that a test can look. */
export class FakeStreamHub implements StreamHub, StreamUpstream {
  onClients: ((clients: number) => void) | undefined
  onPictureCameras: ((cameras: ReadonlySet<string>) => void) | undefined
  /** How much the clock of this service is ahead of that of the test. */
  clockAheadMs = 0
  readonly #clients = new Set<Client>()
  readonly #acceptor: ClientAcceptor
  #number = 0

  constructor(maxClients = 100) {
    this.#acceptor = new ClientAcceptor(this, maxClients)
  }

  adopt(request: UpgradeRequest, socket: Socket, head: Buffer): boolean {
    const { _handle: handle } = socket as Socket & { _handle?: { readStart(): void } }
    // As in another process, where a connection arrives anew.
    handle?.readStart()
    this.#acceptor.accept(request, socket, head)
    return true
  }

  get clients(): number {
    return this.#clients.size
  }

  /** What each client asked for last. */
  get subscriptions(): readonly Subscription[] {
    return [...this.#clients].flatMap(({ wants }) => (wants === undefined ? [] : [wants]))
  }

  get pictureCameras(): ReadonlySet<string> {
    return new Set(this.subscriptions.flatMap((wants) => (wants.frames ? wants.cameras : [])))
  }

  attach(socket: WebSocket): void {
    const client: Client = { socket, wants: undefined }
    this.#clients.add(client)
    socket.on('close', () => {
      this.#clients.delete(client)
      this.onPictureCameras?.(this.pictureCameras)
    })
    // A client that breaks the protocol is closed by ws, which emits this first.
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer) => this.#receive(client, data.toString('utf8')))
    this.#send(client, {
      type: 'hello',
      protocol: streamProtocol,
      service: 'fake',
      version: '0.0.0',
      cursor: this.#cursor(),
    })
  }

  publish({ cameraId, json }: PublishedText, picture?: Uint8Array): void {
    this.#number += 1
    const message = parseDetectionsJson(json.toString())
    for (const client of this.#clients) {
      const { wants } = client
      if (wants === undefined) continue
      if (!wants.cameras.includes('*') && !wants.cameras.includes(cameraId)) continue
      if (wants.frames && picture !== undefined) client.socket.send(picture)
      if (wants.detections) this.#send(client, { type: 'detections', cursor: this.#cursor(), ...message })
    }
  }

  tellGap(dropped: number): void {
    for (const client of this.#clients) this.#send(client, { type: 'gap', dropped, reason: 'slow_client' })
  }

  /** As a crash or a proxy would: no close frame. */
  cutAll(): void {
    for (const { socket } of this.#clients) socket.terminate()
  }

  async stop(): Promise<void> {
    for (const { socket } of this.#clients) socket.close(1001, 'the service is stopping')
  }

  #receive(client: Client, text: string): void {
    const parsed = clientMessageSchema.safeParse(JSON.parse(text))
    if (!parsed.success)
      return this.#send(client, { type: 'error', code: 'GANTRY_WS_MESSAGE', message: 'bad', hint: 'read' })
    if (parsed.data.type === 'ping')
      return this.#send(client, { type: 'pong', at: new Date(Date.now() + this.clockAheadMs).toISOString() })
    const { type: _type, ...wants } = parsed.data
    client.wants = wants
    this.#send(client, { type: 'subscribed', ...wants })
    this.onPictureCameras?.(this.pictureCameras)
  }

  #send(client: Client, message: ServerMessage): void {
    client.socket.send(JSON.stringify(message))
  }

  #cursor(): string {
    return `fake-${this.#number}`
  }
}
