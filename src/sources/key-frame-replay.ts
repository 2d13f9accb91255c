import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { Failure } from './failure-reason.js'
import type { KeyFramePackets } from './key-frame-keeper.js'
import { textOf } from './rtsp-answer.js'
import { RtspSplitter, type RtspMessage } from './rtsp-splitter.js'

const session = '1'

/** Plays one key frame to one decoder, in the way that the camera did: RTSP on loopback, then its end. */
export class KeyFrameReplay {
  readonly #server: Server
  #decoder: Socket | undefined
  readonly problem: Failure | undefined = undefined

  private constructor(
    readonly key: KeyFramePackets,
    server: Server,
  ) {
    this.#server = server
    server.on('connection', (socket) => this.#serve(socket))
  }

  /** @throws what the system has against a port of our own. */
  static async open(key: KeyFramePackets): Promise<KeyFrameReplay> {
    const server = createServer({ noDelay: true })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new KeyFrameReplay(key, server)
  }

  get url(): string {
    return `rtsp://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  plain(text: string): string {
    return text
  }

  close(): Promise<void> {
    this.#server.close()
    this.#decoder?.destroy()
    return Promise.resolve()
  }

  /** Whoever else found the port learns nothing that a camera would not tell: the decoder is the only one that is answered. */
  #serve(decoder: Socket): void {
    if (this.#decoder !== undefined) return void decoder.destroy()
    this.#decoder = decoder
    const parts = { packets: () => undefined, message: (asked: RtspMessage) => this.#answer(decoder, asked) }
    const splitter = new RtspSplitter(parts)
    decoder.on('error', () => undefined)
    decoder.on('data', (bytes) => {
      try {
        splitter.write(bytes)
      } catch {
        decoder.destroy()
      }
    })
  }

  #answer(decoder: Socket, { first, headers }: RtspMessage): void {
    const [method = ''] = first.split(' ')
    const seq = headers.find(([name]) => /^cseq$/i.test(name))?.[1] ?? '0'
    const ok = (more: readonly (readonly [string, string])[], body?: Buffer) =>
      decoder.write(textOf('RTSP/1.0 200 OK', [['CSeq', seq], ...more], body))
    switch (method) {
      case 'DESCRIBE':
        return void ok(
          [
            ['Content-Base', this.url],
            ['Content-Type', 'application/sdp'],
          ],
          Buffer.from(this.key.sdp, 'latin1'),
        )
      case 'SETUP': {
        const channel = this.key.packets[0]?.[1] ?? 0
        const transport = `RTP/AVP/TCP;unicast;interleaved=${channel}-${channel + 1}`
        return void ok([
          ['Session', session],
          ['Transport', transport],
        ])
      }
      case 'PLAY':
        ok([['Session', session]])
        for (const packet of this.key.packets) decoder.write(packet)
        return void decoder.end()
      default:
        ok([['Public', 'OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN']])
    }
  }
}
