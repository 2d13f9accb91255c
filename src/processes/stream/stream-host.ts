import type { Socket } from 'node:net'
import type { Log } from '../../lifecycle/log.js'
import type { StreamReading } from '../../delivery/websocket/stream-figures.js'
import { defaultStreamLimits } from '../../delivery/websocket/stream-limits.js'
import { WebSocketHub } from '../../delivery/websocket/websocket-hub.js'
import { StoredStream } from '../../store/stored-stream.js'
import { ClientAcceptor } from './client-acceptor.js'
import type { FromStream, StreamSetup } from './protocol.js'
import type { LeftOut, Published } from './published-frame.js'
import type { UpgradeRequest } from '../../api/stream-upstream.js'

type Early = Readonly<{ behind: number; accept: () => void }>

/** Everything that lives in the stream process: the hub, and who may join it. */
export class StreamHost {
  readonly #hub: WebSocketHub
  readonly #acceptor: ClientAcceptor
  /** A change of the number of clients that control will be told. */
  #telling = false
  /** Results that have come, those left out with them. */
  #results = 0
  /** Clients whose sockets came before the results that they are not to get. */
  #early: Early[] = []

  constructor(
    setup: StreamSetup,
    readonly tell: (message: FromStream) => void,
    log: Log,
  ) {
    const { storePath } = setup
    const past = storePath === undefined ? undefined : new StoredStream(storePath, log)
    this.#hub = new WebSocketHub(setup.hub, log, defaultStreamLimits, past)
    this.#hub.onPictureCameras = (cameras) => tell({ type: 'pictures', cameras: [...cameras] })
    this.#hub.onClients = () => this.#clientsChanged()
    this.#acceptor = new ClientAcceptor(this.#hub, setup.maxClients)
  }

  get clients(): number {
    return this.#hub.clients
  }

  /** What is published from now on lies behind this position. */
  begin(newest: number): void {
    this.#hub.begin(newest)
  }

  publish(result: Published | LeftOut): void {
    if ('json' in result) {
      this.#results += 1
      this.#hub.publish(result, result.picture, result.atMs)
    } else {
      this.#results += result.results
      this.#hub.missed(result.cameraId, result.results)
    }
    while (this.#early[0] && this.#early[0].behind <= this.#results) this.#early.shift()?.accept()
  }

  /** @param behind - results that come before the client. */
  accept(request: UpgradeRequest, socket: Socket, head: Buffer, behind: number): void {
    if (behind <= this.#results) return this.#acceptor.accept(request, socket, head)
    // As for the acceptor: an error is the client's going away.
    const ignore = (): void => undefined
    socket.on('error', ignore)
    const accept = () => {
      this.#acceptor.accept(request, socket, head)
      socket.off('error', ignore)
    }
    this.#early.push({ behind, accept })
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
