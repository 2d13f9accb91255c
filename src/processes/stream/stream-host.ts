import type { Socket } from 'node:net'
import { parseDetectionsJson } from '../../messages/detections-json.js'
import { fromBase64 } from '../../lifecycle/base64.js'
import type { Log } from '../../lifecycle/log.js'
import type { StreamReading } from '../../delivery/websocket/stream-figures.js'
import { WebSocketHub } from '../../delivery/websocket/websocket-hub.js'
import { ClientAcceptor } from './client-acceptor.js'
import type { FromStream, PublishedResult, StreamSetup } from './protocol.js'
import type { UpgradeRequest } from '../../api/stream-upstream.js'

/** Everything that lives in the stream process: the hub, and who may join it. */
export class StreamHost {
  readonly #hub: WebSocketHub
  readonly #acceptor: ClientAcceptor
  /** A change of the number of clients that control will be told. */
  #telling = false

  constructor(
    setup: StreamSetup,
    readonly tell: (message: FromStream) => void,
    log: Log,
  ) {
    this.#hub = new WebSocketHub(setup.hub, log)
    this.#hub.onPictureCameras = (cameras) => tell({ type: 'pictures', cameras: [...cameras] })
    this.#hub.onClients = () => this.#clientsChanged()
    this.#acceptor = new ClientAcceptor(this.#hub, setup.maxClients)
  }

  get clients(): number {
    return this.#hub.clients
  }

  publish(results: readonly PublishedResult[]): void {
    for (const { json, picture, atMs } of results)
      this.#hub.publish(
        parseDetectionsJson(json),
        picture && { ...picture, jpeg: fromBase64(picture.jpeg) },
        atMs,
      )
  }

  accept(request: UpgradeRequest, socket: Socket, head: Buffer): void {
    this.#acceptor.accept(request, socket, head)
  }

  /** What the hub did since it was last asked. */
  reading(): StreamReading {
    return this.#hub.figures.take()
  }

  /** Closes every client with 1001. Idempotent. */
  stop(): Promise<void> {
    return this.#hub.stop()
  }

  /** A thousand clients that come or go at once are one message. */
  #clientsChanged(): void {
    if (this.#telling) return
    this.#telling = true
    setImmediate(() => {
      this.#telling = false
      this.tell({ type: 'clients', clients: this.#hub.clients })
    })
  }
}
