import { execFile } from 'node:child_process'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { nowMs, wallMs } from '../../src/lifecycle/clock.js'
import { splitNalUnits } from '../../src/tools/rtsp-server/nal-units.js'
import { senderReport, type RtpSender } from '../../src/tools/rtsp-server/rtp-packets.js'
import { RtspParser, rtspResponse, type RtspRequest } from '../../src/tools/rtsp-server/rtsp-message.js'

const run = promisify(execFile)
const payloadBytes = 1_300

/** What cameras send over RTP. */
export type RtpCodec = 'h264' | 'h265' | 'mjpeg'

type Payload = Readonly<{ head: Buffer; body: Buffer }>

/** Pictures in the order that they are sent in; `place` is that in which they are shown. */
type CodedPicture = Readonly<{ place: number; payloads: readonly Payload[] }>

export type CodedStream = Readonly<{ codec: RtpCodec; pictures: readonly CodedPicture[]; sprop: string }>

/** Encodes ten pictures a second of a moving pattern. @param gop - from one key frame to the next. */
export async function codedStream(
  path: string,
  codec: RtpCodec,
  { bFrames = 0, gop = 10, seconds = 4 }: Readonly<{ bFrames?: number; gop?: number; seconds?: number }> = {},
): Promise<CodedStream> {
  const source = ['-f', 'lavfi', '-i', `testsrc2=s=320x176:r=10:d=${seconds}`]
  const x265 = `log-level=none:keyint=${gop}:min-keyint=${gop}:scenecut=0:bframes=${bFrames}:b-adapt=0`
  const options = {
    h264: ['-c:v', 'libx264', '-g', `${gop}`, '-keyint_min', `${gop}`, '-sc_threshold', '0']
      .concat(['-bf', `${bFrames}`, '-b_strategy', '0'])
      .concat(['-f', 'h264']),
    h265: ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', x265, '-f', 'hevc'],
    mjpeg: ['-c:v', 'mjpeg', '-huffman', 'default', '-force_duplicated_matrix', '1', '-f', 'mjpeg'],
  }[codec]
  const format = ['-pix_fmt', codec === 'mjpeg' ? 'yuvj420p' : 'yuv420p']
  // The same encoder tells times and sizes of what it wrote.
  const index = ['-map', '0:v', ...format, ...options.slice(0, -2), '-f', 'framecrc', 'pipe:1']
  const { stdout } = await run(
    'ffmpeg',
    ['-v', 'error', '-y', '-nostdin', ...source, '-map', '0:v', ...format, ...options, path, ...index],
    { encoding: 'utf8' },
  )
  const { readFileSync } = await import('node:fs')
  const bytes = readFileSync(path)
  const rows = stdout
    .split('\n')
    .filter((line) => line.startsWith('0,'))
    .map((line) => line.split(',').map((field) => Number(field.trim())))
  const shown = rows.map(([, , pts = 0]) => pts).toSorted((a, b) => a - b)
  let at = 0
  const coded = rows.map(([, , pts = 0, , size = 0]) => {
    const picture = bytes.subarray(at, at + size)
    at += size
    return { place: shown.indexOf(pts), picture }
  })
  const nals = codec === 'mjpeg' ? [] : splitNalUnits(bytes)
  return {
    codec,
    pictures: coded.map(({ place, picture }) => ({ place, payloads: payloadsOf(codec, picture) })),
    sprop: spropOf(codec, nals),
  }
}

function spropOf(codec: RtpCodec, nals: readonly Buffer[]): string {
  const of = (type: number) => {
    const nal = nals.find(([first = 0]) => (codec === 'h264' ? first & 31 : (first >> 1) & 63) === type)
    return nal?.toString('base64') ?? ''
  }
  if (codec === 'h264') return `packetization-mode=1;sprop-parameter-sets=${of(7)},${of(8)}`
  return codec === 'h265' ? `sprop-vps=${of(32)};sprop-sps=${of(33)};sprop-pps=${of(34)}` : ''
}

function payloadsOf(codec: RtpCodec, picture: Buffer): readonly Payload[] {
  if (codec === 'mjpeg') return jpegPayloads(picture)
  return splitNalUnits(picture).flatMap((nal) => nalPayloads(codec, nal))
}

/** RFC 6184, 5.8, and RFC 7798, 4.4.3. */
function nalPayloads(codec: 'h264' | 'h265', nal: Buffer): readonly Payload[] {
  if (nal.length <= payloadBytes) return [{ head: Buffer.alloc(0), body: nal }]
  const [first = 0, second = 0] = nal
  const headBytes = codec === 'h264' ? 1 : 2
  const parts: Payload[] = []
  for (let at = headBytes; at < nal.length; at += payloadBytes) {
    const edges = (at === headBytes ? 0x80 : 0) | (at + payloadBytes >= nal.length ? 0x40 : 0)
    const head =
      codec === 'h264'
        ? Buffer.from([(first & 0xe0) | 28, edges | (first & 31)])
        : Buffer.from([(first & 0x81) | (49 << 1), second, edges | ((first >> 1) & 63)])
    parts.push({ head, body: nal.subarray(at, at + payloadBytes) })
  }
  return parts
}

/** RFC 2435: the tables of quantisation go with the first packet, those of Huffman are the usual ones. */
function jpegPayloads(jpeg: Buffer): readonly Payload[] {
  let [widthPx, heightPx] = [0, 0]
  const tables: Buffer[] = []
  let at = 2
  for (;;) {
    const [marker, length] = [jpeg[at + 1] ?? 0, jpeg.readUInt16BE(at + 2)]
    if (marker === 0xdb)
      for (let table = at + 5; table < at + 2 + length; table += 65)
        tables.push(jpeg.subarray(table, table + 64))
    if (marker === 0xc0) [heightPx, widthPx] = [jpeg.readUInt16BE(at + 5), jpeg.readUInt16BE(at + 7)]
    at += 2 + length
    if (marker === 0xda) break
  }
  const scan = jpeg.subarray(at, jpeg.lastIndexOf(Buffer.from([0xff, 0xd9])))
  const quantisation = Buffer.concat(tables.slice(0, 2))
  const parts: Payload[] = []
  for (let offset = 0; offset < scan.length; offset += payloadBytes) {
    const head = Buffer.from([
      0,
      offset >> 16,
      (offset >> 8) & 255,
      offset & 255,
      1,
      255,
      widthPx / 8,
      heightPx / 8,
    ])
    const first = Buffer.concat([Buffer.from([0, 0, 0, quantisation.length]), quantisation])
    parts.push({
      head: offset === 0 ? Buffer.concat([head, first]) : head,
      body: scan.subarray(offset, offset + payloadBytes),
    })
  }
  return parts
}

/** A camera that sends as often as it is told, one picture after the other, beginning with a key frame for each client. */
export class PacedRtspServer {
  /** Time between two pictures from now on. */
  everyMs: number
  /** It sends no pictures. */
  isSilent = false
  /** It answers no request once it plays. */
  isDeaf = false
  /** Sender reports; most cameras send some. */
  reportEveryMs: number | undefined
  /** It ends a session that nothing is asked in for so long. */
  sessionMs = 60_000
  /** Pictures left out at the beginning of each session: it begins between two key frames. */
  joinsAt = 0
  /** Sent at once at the beginning of each session, as cameras send what they kept. */
  burst = 1
  readonly requests: string[] = []
  /** When pictures were sent. */
  readonly sentMs: number[] = []
  sessions = 0
  readonly #server: Server = createServer((socket) => this.#serve(socket))
  readonly #clients = new Set<Socket>()

  private constructor(
    readonly stream: CodedStream,
    everyMs: number,
  ) {
    this.everyMs = everyMs
  }

  static async start(stream: CodedStream, everyMs: number): Promise<PacedRtspServer> {
    const server = new PacedRtspServer(stream, everyMs)
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get url(): string {
    return `rtsp://127.0.0.1:${(this.#server.address() as AddressInfo).port}/cam`
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #serve(socket: Socket): void {
    this.#clients.add(socket)
    let playing: Playing | undefined
    let idle: NodeJS.Timeout | undefined
    const parser = new RtspParser((request) => {
      this.requests.push(request.method)
      clearTimeout(idle)
      idle = setTimeout(() => socket.destroy(), this.sessionMs)
      if (playing !== undefined && this.isDeaf) return
      playing = this.#answer(socket, request) ?? playing
    })
    socket.on('data', (chunk: Buffer) => void parser.write(chunk))
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      clearTimeout(idle)
      playing?.stop()
      this.#clients.delete(socket)
    })
  }

  #answer(socket: Socket, request: RtspRequest): Playing | undefined {
    const say = (headers: Record<string, string> = {}, body = '') =>
      socket.write(rtspResponse(200, request, headers, body))
    const session = { Session: `cam;timeout=${Math.round(this.sessionMs / 1_000)}` }
    switch (request.method) {
      case 'OPTIONS':
        say({ Public: 'OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER' })
        return undefined
      case 'DESCRIBE':
        say({ 'Content-Type': 'application/sdp', 'Content-Base': `${request.url}/` }, this.#description())
        return undefined
      case 'SETUP':
        say({ ...session, Transport: 'RTP/AVP/TCP;unicast;interleaved=0-1' })
        return undefined
      case 'PLAY':
        say({ ...session, Range: 'npt=0.000-' })
        this.sessions += 1
        return new Playing(this, socket)
      case 'TEARDOWN':
        say()
        socket.end()
        return undefined
      default:
        say(session)
        return undefined
    }
  }

  #description(): string {
    const { codec, sprop } = this.stream
    const type = codec === 'mjpeg' ? 26 : 96
    const name = { h264: 'H264', h265: 'H265', mjpeg: 'JPEG' }[codec]
    return [
      ...['v=0', 'o=- 0 0 IN IP4 127.0.0.1', 's=cam', 'c=IN IP4 0.0.0.0', 't=0 0'],
      ...[`m=video 0 RTP/AVP ${type}`, `a=rtpmap:${type} ${name}/90000`],
      ...(sprop === '' ? [] : [`a=fmtp:${type} ${sprop}`]),
      ...['a=control:track1', ''],
    ].join('\r\n')
  }
}

/** One session of a client. */
class Playing {
  readonly #sender: RtpSender = { sequence: 1, ssrc: 7, packets: 0, octets: 0 }
  readonly #reports: NodeJS.Timeout | undefined
  #timer: NodeJS.Timeout | undefined
  #sent: number
  #rtpTime = 90_000
  #placeMs = 0

  constructor(
    readonly server: PacedRtspServer,
    readonly socket: Socket,
  ) {
    this.#sent = server.joinsAt
    const { reportEveryMs } = server
    if (reportEveryMs !== undefined) this.#reports = setInterval(() => this.#report(), reportEveryMs)
    for (let n = 0; n < server.burst; n += 1) this.#send()
    this.#next()
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearInterval(this.#reports)
  }

  #next(): void {
    this.#timer = setTimeout(() => {
      this.#send()
      this.#next()
    }, this.server.everyMs)
  }

  #report(): void {
    this.socket.write(senderReport(this.#sender, this.#rtpTime, wallMs(), 1))
  }

  #send(): void {
    const { stream, everyMs, isSilent, sentMs } = this.server
    const index = this.#sent % stream.pictures.length
    const picture = stream.pictures[index]
    this.#sent += 1
    this.#placeMs += everyMs
    if (picture === undefined || isSilent) return
    // Later pictures are shown before where there are B-frames.
    this.#rtpTime = Math.round(90 * (this.#placeMs + (picture.place - index) * everyMs)) + 900_000
    sentMs.push(nowMs())
    const type = stream.codec === 'mjpeg' ? 26 : 96
    for (const [place, { head, body }] of picture.payloads.entries()) {
      const packet = Buffer.alloc(16)
      packet[0] = 0x24
      packet.writeUInt16BE(12 + head.length + body.length, 2)
      packet[4] = 0x80
      packet[5] = type | (place === picture.payloads.length - 1 ? 0x80 : 0)
      packet.writeUInt16BE(this.#sender.sequence, 6)
      packet.writeUInt32BE(this.#rtpTime >>> 0, 8)
      packet.writeUInt32BE(this.#sender.ssrc, 12)
      this.#sender.sequence = (this.#sender.sequence + 1) & 0xffff
      this.#sender.packets += 1
      this.#sender.octets += head.length + body.length
      this.socket.write(Buffer.concat([packet, head, body]))
    }
  }
}
