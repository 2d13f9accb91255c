import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer, type TLSSocket } from 'node:tls'
import { surviveAcceptErrors } from '../../api/accept-errors.js'
import { ListenError, PortInUseError } from '../../api/errors.js'
import type { Peer } from '../../api/peer.js'
import { proxyHeader } from '../../api/proxy-header.js'
import type { TlsMaterial } from '../../config/tls-files.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { RepeatedLines } from '../../lifecycle/repeated-lines.js'
import type { Service } from '../../lifecycle/service.js'
import { joinSockets } from './joined-sockets.js'
import { refusePlain } from './plain-http.js'
import type { DoorBeat, DoorPort, DoorPorts, DoorRefusal, DoorSetup } from './protocol.js'

/** From the first byte of a connection to the end of its handshake, and as long again for that first byte. */
const handshakeAtMostMs = 10_000
/** First byte of a connection that speaks TLS. */
const handshakeRecord = 0x16

/** Ends TLS on the ports of the service. What is inside goes to control, behind a header of who it is from. */
export class TlsDoor implements Service {
  readonly #listeners: Server[] = []
  readonly #tls: TlsServer[] = []
  /** Connections of clients, from their first byte on. */
  readonly #open = new Set<Socket>()
  readonly #lines = new RepeatedLines()
  #accepted = 0
  #refused: Partial<Record<DoorRefusal, number>> = {}

  constructor(
    readonly setup: DoorSetup,
    readonly log: Log,
  ) {}

  /** Resolves with the ports taken. @throws PortInUseError, ListenError */
  async listen(): Promise<DoorPorts> {
    return Promise.all(this.setup.ports.map((port) => this.#listen(port)))
  }

  /** For connections that come from now on. */
  use(material: TlsMaterial): void {
    for (const server of this.#tls) server.setSecureContext(contextOf(material))
  }

  /** What there is, and what came since it was last asked. */
  reading(): Pick<DoorBeat, 'connections' | 'accepted' | 'refused'> {
    const [accepted, refused] = [this.#accepted, this.#refused]
    this.#accepted = 0
    this.#refused = {}
    return { connections: this.#open.size, accepted, refused }
  }

  /** Takes no more connections, lets those there are end for `drainMs`, then cuts. Idempotent, never rejects. */
  async stop(drainMs: number): Promise<void> {
    for (const listener of this.#listeners) listener.close()
    const closed = [...this.#open].map((socket) => once(socket, 'close'))
    await atMost(drainMs, Promise.all(closed))
    for (const socket of this.#open) socket.destroy()
    this.#lines.close()
  }

  async #listen({ setting, port, socketPath, maxConnections }: DoorPort): Promise<number> {
    const { host, material } = this.setup
    const tls = createTlsServer({
      ...contextOf(material),
      requestCert: material.ca !== undefined,
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: handshakeAtMostMs,
      allowHalfOpen: true,
    })
    tls.on('secureConnection', (socket) => this.#letIn(socket, socketPath))
    tls.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => this.#shutOut(error, socket))
    this.#tls.push(tls)
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#look(socket, tls))
    listener.maxConnections = maxConnections
    listener.on('drop', () => this.#count('full', 'too many connections'))
    const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
    try {
      listener.listen(port, host)
      await once(listener, 'listening')
    } catch (error) {
      const inUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
      throw inUse ? new PortInUseError(address, setting, error) : new ListenError(address, error)
    }
    surviveAcceptErrors(listener, this.log)
    this.#listeners.push(listener)
    return (listener.address() as AddressInfo).port
  }

  /** By its first byte. Who speaks plain HTTP is told; what is neither is cut. */
  #look(socket: Socket, tls: TlsServer): void {
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    const ignore = (): void => undefined
    const timer = setTimeout(() => {
      this.#count('timeout', 'it said nothing')
      socket.destroy()
    }, handshakeAtMostMs)
    const end = (): void => void socket.destroy()
    const done = (): void => {
      clearTimeout(timer)
      socket.off('data', read).off('end', end).off('close', done)
    }
    const read = (data: Buffer): void => {
      done()
      if (data[0] !== handshakeRecord) {
        this.#count('plain', 'it does not speak TLS')
        return refusePlain(socket, data)
      }
      socket.pause()
      socket.unshift(data)
      socket.off('error', ignore)
      tls.emit('connection', socket)
    }
    socket.on('data', read).on('error', ignore).on('end', end).on('close', done)
  }

  #letIn(near: TLSSocket, socketPath: string): void {
    this.#accepted += 1
    const far = connect({ path: socketPath, allowHalfOpen: true })
    joinSockets(near, far)
    far.write(proxyHeader(peerBehind(near, this.setup.material.ca !== undefined)))
  }

  #shutOut(error: NodeJS.ErrnoException, socket: TLSSocket): void {
    const address = socket.remoteAddress
    // Node cuts a connection whose certificate it does not trust, and calls that a reset.
    const { authorizationError: untrusted } = socket as { authorizationError?: Error | string | null }
    if (untrusted)
      this.#count('untrusted', typeof untrusted === 'string' ? untrusted : untrusted.message, address)
    // A client that goes away, as health checks of TCP do, is nothing to tell of.
    else if (error.code !== 'ECONNRESET') this.#count(refusalOf(error), reasonOf(error), address)
    socket.destroy()
  }

  #count(refusal: DoorRefusal, reason: string, address?: string): void {
    this.#refused[refusal] = (this.#refused[refusal] ?? 0) + 1
    this.#lines.line(`${refusal} ${reason}`, (repeats) =>
      this.log.info({ refusal, reason, address, ...repeats }, 'a connection was not let in by TLS'),
    )
  }
}

function contextOf({ cert, key, ca }: TlsMaterial) {
  return { cert, key, ca, minVersion: 'TLSv1.2' } as const
}

function peerBehind(socket: TLSSocket, isChecked: boolean): Peer {
  const { remoteAddress = '', remotePort = 0 } = socket
  const subject = isChecked ? socket.getPeerX509Certificate()?.subject : undefined
  const line = subject?.split('\n').join(', ')
  return { address: remoteAddress, port: remotePort, ...(line !== undefined && { subject: line }) }
}

function refusalOf({ code = '' }: NodeJS.ErrnoException): DoorRefusal {
  if (code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'timeout'
  return code === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE' ? 'no_certificate' : 'handshake'
}

/** OpenSSL puts numbers and file names around its reason. */
function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  const [, reason] = /^[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+)/.exec(message) ?? []
  return reason ?? (code === undefined ? message : `${code}: ${message}`).split('\n')[0] ?? ''
}
