import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** What the proxy does to the traffic it carries. */
export type ProxyFault =
  | { kind: 'none' }
  /** Every chunk arrives this much later, both ways. */
  | { kind: 'delay'; ms: number }
  /** Connections stay open, new ones are accepted, and nothing passes. */
  | { kind: 'black_hole' }
  /** Connections are reset, new ones too. */
  | { kind: 'reset' }
  /** Each connection is reset once the far side has sent this many bytes, which the near side does not get. */
  | { kind: 'cut_replies'; afterBytes: number }
  /** Where this stands in what goes to the far side, a byte is another when it arrives. */
  | { kind: 'damage'; text: string }
  /** The same in what comes back. */
  | { kind: 'damage_replies'; text: string }

type Link = { near: Socket; far: Socket; replied: number; head: string; lost: boolean }

/** A TCP proxy on loopback that can be told to misbehave; connections already open are affected too. */
export class TcpProxy {
  /** Replies that were cut so far. */
  cuts = 0
  #fault: ProxyFault = { kind: 'none' }
  readonly #links = new Set<Link>()
  #losing: (head: string) => boolean = () => false
  readonly #held: (() => void)[] = []

  private constructor(
    readonly server: Server,
    readonly targetPort: number,
  ) {
    server.on('connection', (near) => this.#carry(near))
  }

  static async start(targetPort: number, port = 0): Promise<TcpProxy> {
    const proxy = new TcpProxy(createServer(), targetPort)
    proxy.server.listen(port, '127.0.0.1')
    await once(proxy.server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  set fault(fault: ProxyFault) {
    this.#fault = fault
    for (const link of this.#links) link.replied = 0
    if (fault.kind === 'reset') this.#resetAll()
    if (fault.kind !== 'black_hole') for (const release of this.#held.splice(0)) release()
  }

  /**
   * Connections of a kind carry nothing any more and are never closed, as after a night's sleep or with a NAT that forgot them. Others, and new ones, go on.
   *
   * @param isLost - told by the first bytes of a connection.
   * @param newToo - new ones that begin so are lost as well, until {@link lose} is called without.
   * @returns how many were lost.
   */
  lose(isLost: (head: string) => boolean, newToo = false): number {
    this.#losing = newToo ? isLost : () => false
    const links = [...this.#links].filter(({ head, lost }) => !lost && isLost(head))
    for (const link of links) link.lost = true
    return links.length
  }

  async stop(): Promise<void> {
    this.#resetAll()
    const closed = once(this.server, 'close')
    this.server.close()
    await closed
  }

  #carry(near: Socket): void {
    if (this.#fault.kind === 'reset') {
      near.resetAndDestroy()
      return
    }
    const far = connect(this.targetPort, '127.0.0.1')
    const link: Link = { near, far, replied: 0, head: '', lost: false }
    this.#links.add(link)
    const end = () => {
      // Whoever lost the other way does not learn that the far side has gone.
      if (link.lost && !near.destroyed) return
      near.destroy()
      far.destroy()
      this.#links.delete(link)
    }
    for (const socket of [near, far]) socket.on('error', end).on('close', end).setNoDelay(true)
    near.on('data', (chunk: Buffer) => {
      if (link.head === '') {
        link.head = chunk.toString('latin1')
        link.lost = this.#losing(link.head)
      }
      if (link.lost) return
      if (this.#fault.kind === 'damage') damage(chunk, this.#fault.text)
      this.#pass(chunk, far)
    })
    far.on('data', (chunk: Buffer) => {
      if (link.lost) return
      link.replied += chunk.length
      if (this.#fault.kind === 'damage_replies') damage(chunk, this.#fault.text)
      if (this.#fault.kind === 'cut_replies' && link.replied >= this.#fault.afterBytes) {
        this.cuts += 1
        near.resetAndDestroy()
      } else this.#pass(chunk, near)
    })
  }

  #pass(chunk: Buffer, to: Socket): void {
    const write = () => {
      if (to.writable) to.write(chunk)
    }
    if (this.#fault.kind === 'black_hole') this.#held.push(write)
    else if (this.#fault.kind === 'delay') setTimeout(write, this.#fault.ms)
    else write()
  }

  #resetAll(): void {
    for (const { near, far } of this.#links) {
      near.resetAndDestroy()
      far.destroy()
    }
  }
}

function damage(chunk: Buffer, text: string): void {
  for (let at = chunk.indexOf(text); at >= 0; at = chunk.indexOf(text, at + 1)) chunk[at] = 0x3f
}
