import type { Socket } from 'node:net'
import type { Log } from '../../lifecycle/log.js'
import type { StreamReading } from '../../delivery/websocket/stream-figures.js'
import { defaultStreamLimits } from '../../delivery/websocket/stream-limits.js'
import { WebSocketHub } from '../../delivery/websocket/websocket-hub.js'
import { StoredStream } from '../../store/stored-stream.js'
import { nodeScope, scopeHeader } from '../../cluster/node-scope.js'
import type { PeerNode } from '../../cluster/peer-streams.js'
import { ClientAcceptor } from './client-acceptor.js'
import { NodeStream } from './node-stream.js'
import type { FromStream, StreamSetup } from './protocol.js'
import type { LeftOut, Published } from './published-frame.js'
import type { UpgradeRequest } from '../../api/stream-upstream.js'

/** Nodes of one cluster, each with a connection, and some more while these are made anew. */
const mostNodes = 1_000

type Early = Readonly<{ behind: number; accept: () => void }>

/** Everything that lives in the stream process: the hub, and who may join it. */
export class StreamHost {
  /** Of viewers, and of the other nodes of a cluster. */
  readonly #hub: WebSocketHub
  readonly #node: NodeStream | undefined
  readonly #acceptor: ClientAcceptor
  readonly #nodeAcceptor: ClientAcceptor | undefined
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
    const { storePath, node, hub } = setup
    const past = storePath === undefined ? undefined : new StoredStream(storePath, log)
    const pictures = (cameras: ReadonlySet<string>) => tell({ type: 'pictures', cameras: [...cameras] })
    if (node === undefined) {
      this.#hub = new WebSocketHub(hub, log, defaultStreamLimits, past)
      this.#hub.onPictureCameras = pictures
    } else {
      this.#node = new NodeStream(node, hub, past, pictures, log)
      this.#hub = this.#node.all
      this.#node.own.onClients = () => this.#clientsChanged()
      this.#nodeAcceptor = new ClientAcceptor(this.#node.own, mostNodes)
    }
    this.#hub.onClients = () => this.#clientsChanged()
    this.#acceptor = new ClientAcceptor(this.#hub, setup.maxClients)
  }

  /** Those that nodes of the cluster read by are among them. */
  get clients(): number {
    return this.#hub.clients + (this.#node?.own.clients ?? 0)
  }

  /** What is published from now on lies behind this position. */
  begin(newest: number): void {
    const hub = this.#node?.own ?? this.#hub
    hub.begin(newest)
  }

  /** The other nodes of the cluster. */
  nodes(nodes: readonly PeerNode[]): void {
    this.#node?.peers.nodes(nodes)
  }

  publish(result: Published | LeftOut): void {
    if ('json' in result) {
      this.#results += 1
      for (const hub of this.#hubs) hub.publish(result, result.picture, result.atMs)
    } else {
      this.#results += result.results
      for (const hub of this.#hubs) hub.missed(result.cameraId, result.results)
    }
    while (this.#early[0] && this.#early[0].behind <= this.#results) this.#early.shift()?.accept()
  }

  /** @param behind - results that come before the client. */
  accept(request: UpgradeRequest, socket: Socket, head: Buffer, behind: number): void {
    const isNode = request.headers[scopeHeader] === nodeScope
    const acceptor = (isNode ? this.#nodeAcceptor : undefined) ?? this.#acceptor
    if (behind <= this.#results) return acceptor.accept(request, socket, head)
    // As for the acceptor: an error is the client's going away.
    const ignore = (): void => undefined
    socket.on('error', ignore)
    const accept = () => {
      acceptor.accept(request, socket, head)
      socket.off('error', ignore)
    }
    this.#early.push({ behind, accept })
  }

  get #hubs(): readonly WebSocketHub[] {
    return this.#node === undefined ? [this.#hub] : [this.#node.own, this.#hub]
  }

  /** What the hub of viewers did since it was last asked. */
  reading(): StreamReading {
    this.#node?.own.figures.take()
    return this.#hub.figures.take()
  }

  /** Closes every client with 1001. Idempotent. */
  stop(): Promise<void> {
    return this.#node?.stop() ?? this.#hub.stop()
  }

  /** A thousand clients that come or go at once are one message. */
  #clientsChanged(): void {
    if (this.#telling) return
    this.#telling = true
    setImmediate(() => {
      this.#telling = false
      this.tell({ type: 'clients', clients: this.clients })
    })
  }
}
