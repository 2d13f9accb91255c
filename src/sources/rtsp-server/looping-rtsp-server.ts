import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { describeClip } from './clip-player.js'
import { RtspConnection } from './rtsp-connection.js'
import { RtspStream, type StreamOptions } from './rtsp-stream.js'

/**
 * Serves video files as RTSP cameras on loopback: H.264 or H.265 as it lies in the file, in real time, over TCP and UDP (RFC 2326).
 *
 * Each client gets the clip from its beginning, so that its first picture comes at once. Needs ffmpeg.
 */
export class LoopingRtspServer {
  readonly #streams = new Map<string, RtspStream>()
  readonly #connections = new Set<RtspConnection>()
  readonly #server: Server = createServer((socket) => {
    const connection: RtspConnection = new RtspConnection(
      socket,
      (path) => this.#streams.get(path),
      () => this.#connections.delete(connection),
    )
    this.#connections.add(connection)
  })

  /** @param port - 0 takes a free one. */
  async start(port = 0): Promise<{ port: number }> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
    return { port: this.port }
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** @param path - e.g. `/dock`. @throws when ffmpeg cannot play the clip. */
  async addStream(path: string, clip: string, options: StreamOptions = {}): Promise<RtspStream> {
    const stream = new RtspStream(path, clip, await describeClip(clip), options)
    this.#streams.set(path, stream)
    return stream
  }

  removeStream(path: string): void {
    this.#streams.delete(path)
    for (const connection of [...this.#connections]) if (connection.playing === path) connection.close()
  }

  /** @param credentials - `user:password`, as a camera's owner would write it into the URL. */
  url(path: string, credentials = ''): string {
    return `rtsp://${credentials === '' ? '' : `${credentials}@`}127.0.0.1:${this.port}${path}`
  }

  /** Clients that play the path now. */
  sessions(path: string): number {
    return [...this.#connections].filter((connection) => connection.playing === path).length
  }

  /** No client gets another packet until `thaw`; connections stay open. */
  freeze(): void {
    for (const connection of this.#connections) connection.freeze()
  }

  thaw(): void {
    for (const connection of this.#connections) connection.thaw()
  }

  /** Cuts every client off; new ones are served. */
  cutAll(): void {
    for (const connection of [...this.#connections]) connection.close()
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.cutAll()
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
  }
}
