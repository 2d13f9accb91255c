import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { isParameterSet, nalType, type PictureUnits, type VideoCodec } from './annex-b.js'

const mostPayloadBytes = 1_380
const clockHz = 90_000

export type ServedUnits = Readonly<{
  codec: VideoCodec
  /** In decoding order; the first one is sent after the last. */
  pictures: readonly PictureUnits[]
  fps: number
  /** The picture that a client gets first. */
  from?: number
  /** Whether the session description has the parameter sets. */
  describes?: boolean
  /** Packets that arrive a second time, after the one behind them. */
  repeats?: (packet: number) => boolean
}>

/** Serves NAL units over RTSP (TCP, UDP) as they are, with the habits of cameras: H.265 too, joined anywhere. */
export class UnitRtspServer {
  readonly #server: Server = createServer((socket) => this.#serve(socket))
  readonly #open = new Set<Socket>()
  #port = 0

  private constructor(readonly served: Readonly<Record<string, ServedUnits>>) {}

  /** @param served - by path. */
  static async start(served: Readonly<Record<string, ServedUnits>>): Promise<UnitRtspServer> {
    const server = new UnitRtspServer(served)
    server.#server.listen(0, '127.0.0.1')
    await once(server.#server, 'listening')
    server.#port = (server.#server.address() as AddressInfo).port
    return server
  }

  url(path: string): string {
    return `rtsp://127.0.0.1:${this.#port}${path}`
  }

  async stop(): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #serve(socket: Socket): void {
    this.#open.add(socket)
    let rest = Buffer.alloc(0)
    let send: (packet: Buffer) => void = () => undefined
    let udp: UdpSocket | undefined
    let timer: NodeJS.Timeout | undefined
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.#open.delete(socket)
      clearInterval(timer)
      udp?.close()
    })
    const answer = (headers: ReadonlyMap<string, string>, lines: readonly string[], body = '') =>
      socket.write(
        [
          'RTSP/1.0 200 OK',
          `CSeq: ${headers.get('cseq')}`,
          ...lines,
          `Content-Length: ${body.length}`,
          '',
          body,
        ].join('\r\n'),
      )
    const handle = (method: string, url: string, headers: ReadonlyMap<string, string>) => {
      const path = `/${new URL(url).pathname.split('/')[1] ?? ''}`
      const served = this.served[path]
      if (served === undefined) return socket.destroy()
      const transport = headers.get('transport') ?? ''
      const port = /client_port=(\d+)/.exec(transport)?.[1]
      switch (method) {
        case 'DESCRIBE':
          return answer(headers, ['Content-Type: application/sdp', `Content-Base: ${url}/`], sdpOf(served))
        case 'SETUP':
          if (port === undefined)
            send = (packet) => socket.write(Buffer.concat([interleaved(packet), packet]))
          else {
            const sender = (udp = createSocket('udp4'))
            send = (packet) => sender.send(packet, Number(port), '127.0.0.1')
          }
          return answer(headers, [
            `Transport: ${port === undefined ? 'RTP/AVP/TCP;unicast;interleaved=0-1' : `RTP/AVP;unicast;client_port=${port}-${Number(port) + 1};server_port=${40_000}-${40_001}`}`,
            'Session: 1;timeout=60',
          ])
        case 'PLAY':
          answer(headers, ['Session: 1', 'Range: npt=0.000-'])
          timer = play(served, (packet) => send(packet))
          return undefined
        case 'TEARDOWN':
          return socket.end()
        default:
          return answer(headers, ['Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN'])
      }
    }
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      for (;;) {
        const report = rest[0] === 0x24 ? 4 + (rest.length < 4 ? Infinity : rest.readUInt16BE(2)) : 0
        if (report > rest.length) return
        if (report > 0) rest = rest.subarray(report)
        else {
          const end = rest.indexOf('\r\n\r\n')
          if (end < 0) return
          const [first = '', ...lines] = rest.toString('latin1', 0, end).split('\r\n')
          rest = rest.subarray(end + 4)
          const [method = '', url = ''] = first.split(' ')
          handle(
            method,
            url,
            new Map(
              lines.map((line) => [line.split(':')[0]?.toLowerCase() ?? '', line.replace(/^[^:]*:\s*/, '')]),
            ),
          )
        }
      }
    })
  }
}

function sdpOf({ codec, pictures, describes = false }: ServedUnits): string {
  const sets = pictures.flat().filter((nal) => isParameterSet(codec, nal))
  const set = (type: number) => sets.find((nal) => nalType(codec, nal) === type)?.toString('base64') ?? ''
  const sprop =
    codec === 'h265'
      ? `sprop-vps=${set(32)};sprop-sps=${set(33)};sprop-pps=${set(34)}`
      : `packetization-mode=1;sprop-parameter-sets=${set(7)},${set(8)}`
  return [
    ...['v=0', 'o=- 0 0 IN IP4 0.0.0.0', 's=camera', 'c=IN IP4 0.0.0.0', 't=0 0', 'm=video 0 RTP/AVP 96'],
    `a=rtpmap:96 ${codec.toUpperCase()}/${clockHz}`,
    ...(describes ? [`a=fmtp:96 ${sprop}`] : []),
    ...['a=control:track1', ''],
  ].join('\r\n')
}

function play(
  { codec, pictures, fps, from = 0, repeats }: ServedUnits,
  send: (packet: Buffer) => void,
): NodeJS.Timeout {
  const numbers = { picture: from, packet: 0 }
  let again: Buffer | undefined
  const one = (packet: Buffer) => {
    send(packet)
    if (again !== undefined) send(again)
    again = repeats?.(numbers.packet) === true ? packet : undefined
  }
  const picture = () => {
    const time = Math.round(((numbers.picture - from) * clockHz) / fps)
    const payloads = (pictures[numbers.picture % pictures.length] ?? []).flatMap((nal) =>
      payloadsOf(codec, nal),
    )
    for (const [index, payload] of payloads.entries()) {
      one(packetOf(payload, numbers.packet, time, index === payloads.length - 1))
      numbers.packet += 1
    }
    numbers.picture += 1
  }
  picture()
  return setInterval(picture, 1_000 / fps)
}

function packetOf(payload: Buffer, sequence: number, time: number, isLast: boolean): Buffer {
  const head = Buffer.alloc(12)
  head[0] = 0x80
  head[1] = 96 | (isLast ? 0x80 : 0)
  head.writeUInt16BE(sequence & 0xffff, 2)
  head.writeUInt32BE(time >>> 0, 4)
  head.writeUInt32BE(0xfeed, 8)
  return Buffer.concat([head, payload])
}

function interleaved(packet: Buffer): Buffer {
  const head = Buffer.from([0x24, 0, 0, 0])
  head.writeUInt16BE(packet.length, 2)
  return head
}

/** A NAL unit as it is, or in fragments (RFC 6184, 5.8; RFC 7798, 4.4.3). */
function payloadsOf(codec: VideoCodec, nal: Buffer): readonly Buffer[] {
  if (nal.length <= mostPayloadBytes) return [nal]
  const headBytes = codec === 'h265' ? 2 : 1
  const type = nalType(codec, nal)
  const fragments: Buffer[] = []
  for (let at = headBytes; at < nal.length; at += mostPayloadBytes) {
    const flags = (at === headBytes ? 0x80 : 0) | (at + mostPayloadBytes >= nal.length ? 0x40 : 0) | type
    const [first = 0, second = 0] = nal
    const head = codec === 'h265' ? [(first & 0x81) | (49 << 1), second, flags] : [(first & 0xe0) | 28, flags]
    fragments.push(Buffer.concat([Buffer.from(head), nal.subarray(at, at + mostPayloadBytes)]))
  }
  return fragments
}
