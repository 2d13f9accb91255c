import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** What came, in order: answers, and packets with what RTP says of them. */
export type RtspPart =
  | Readonly<{ kind: 'answer'; status: number; seq: number; headers: ReadonlyMap<string, string> }>
  | Readonly<{
      kind: 'packet'
      channel: number
      sequence: number
      rtpTime: number
      isLast: boolean
      payload: Buffer
    }>

/** A client that reads when it wants to, and asks what it wants to. Throws where an answer stands inside of a packet. */
export class RtspClient {
  readonly parts: RtspPart[] = []
  #rest: Buffer = Buffer.alloc(0)
  #seq = 0
  #session = ''

  private constructor(
    readonly socket: Socket,
    readonly url: string,
  ) {
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('error', () => undefined)
  }

  static async open(url: string): Promise<RtspClient> {
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    return new RtspClient(socket, url)
  }

  get answers() {
    return this.parts.filter((part) => part.kind === 'answer')
  }

  /** Of the stream; not its reports. */
  packetsOn(channel: number) {
    return this.parts.filter((part) => part.kind === 'packet').filter((part) => part.channel === channel)
  }

  /** @returns the number of the request. */
  ask(method: string, headers: Readonly<Record<string, string>> = {}): number {
    this.#seq += 1
    const all = {
      CSeq: `${this.#seq}`,
      ...(this.#session === '' ? {} : { Session: this.#session }),
      ...headers,
    }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
    this.socket.write([`${method} ${this.url} RTSP/1.0`, ...lines, '', ''].join('\r\n'))
    return this.#seq
  }

  async play(channels = '0-1'): Promise<void> {
    this.ask('SETUP', { Transport: `RTP/AVP/TCP;unicast;interleaved=${channels}` })
    this.ask('PLAY')
    await this.until(() => this.answers.length >= 2)
  }

  /** Waits for what is looked for in what has come. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await once(this.socket, 'data', { signal: AbortSignal.timeout(20_000) })
  }

  close(): void {
    this.socket.destroy()
  }

  #read(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
    for (;;) {
      const used = this.#rest[0] === 0x24 ? this.#packet() : this.#answer()
      if (used === 0) return
      this.#rest = this.#rest.subarray(used)
    }
  }

  #packet(): number {
    if (this.#rest.length < 4) return 0
    const bytes = this.#rest.readUInt16BE(2)
    if (this.#rest.length < 4 + bytes) return 0
    const packet = this.#rest.subarray(4, 4 + bytes)
    this.parts.push({
      kind: 'packet',
      channel: this.#rest[1] ?? 0,
      sequence: packet.readUInt16BE(2),
      rtpTime: packet.readUInt32BE(4),
      isLast: (packet[1] ?? 0) >= 0x80,
      payload: Buffer.from(packet.subarray(12)),
    })
    return 4 + bytes
  }

  #answer(): number {
    if (this.#rest.length === 0) return 0
    const end = this.#rest.indexOf('\r\n\r\n')
    const text = this.#rest.toString('latin1', 0, end < 0 ? undefined : end)
    if (!'RTSP/1.0 '.startsWith(text.slice(0, 9))) throw new Error(`no answer: ${text.slice(0, 40)}`)
    if (end < 0) return 0
    const [first = '', ...lines] = text.split('\r\n')
    const headers = new Map(
      lines.map((line): [string, string] => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    this.#session = headers.get('session')?.split(';')[0] ?? this.#session
    const seq = Number(headers.get('cseq'))
    this.parts.push({ kind: 'answer', status: Number(first.split(' ')[1]), seq, headers })
    return end + 4 + Number(headers.get('content-length') ?? 0)
  }
}
