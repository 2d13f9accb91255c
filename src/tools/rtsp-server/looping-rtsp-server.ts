import type { Service } from '../../lifecycle/service.js'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { loadClip, type Clip } from './clip.js'
import { RtspConnection } from './rtsp-connection.js'
import { ServedStream, type StreamOptions } from './served-stream.js'

/**
 * Serves video files as cameras on loopback: RTSP over TCP (interleaved) and UDP, H.264, each clip in an endless loop, any number of
 * clients (RFC 2326).
 *
 * Clips are held in memory and paced here, so that a camera costs no process and nothing runs while nobody watches. Each client gets
 * the clip from its beginning, so that its first picture comes at once. ffmpeg is needed to read the files.
 */
export class LoopingRtspServer implements Service {
  readonly #streams = new Map<string, ServedStream>()
  readonly #clips = new Map<string, Promise<Clip>>()
  readonly #connections = new Set<RtspConnection>()
  readonly #server: Server = createServer((socket) => this.#accept(socket))
  #port = 0

  /** @param sessionSeconds - how long a session is kept for a client that says nothing. */
  constructor(readonly sessionSeconds = 60) {}

  /** @param port - 0 takes a free one, or the one it had before. Rejects with the system's error when it is in use. */
  async start(port = 0): Promise<{ port: number }> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port === 0 ? this.#port : port, '127.0.0.1', () => {
        this.#server.removeListener('error', reject)
        resolve()
      })
    })
    this.#port = (this.#server.address() as AddressInfo).port
    return { port: this.#port }
  }

  get port(): number {
    return this.#port
  }

  /**
   * Offers a file at a path, e.g. `/dock`. The same file may stand behind many paths; it is read once.
   *
   * @throws ClipError `GANTRY_SOURCE_FAILED` when ffmpeg cannot read the clip.
   */
  async addStream(path: string, clip: string, options: StreamOptions = {}): Promise<ServedStream> {
    const loading = this.#clips.get(clip) ?? loadClip(clip)
    this.#clips.set(clip, loading)
    const stream = new ServedStream(await loading, options)
    this.#streams.set(path, stream)
    return stream
  }

  /** Cuts off who plays the path and answers 404 from then on. */
  removeStream(path: string): void {
    const stream = this.#streams.get(path)
    this.#streams.delete(path)
    for (const connection of [...this.#connections]) if (connection.stream === stream) connection.close()
  }

  /** @param credentials - `user:password`, as a camera's owner would write it into the URL. */
  url(path: string, credentials = ''): string {
    return `rtsp://${credentials === '' ? '' : `${credentials}@`}127.0.0.1:${this.#port}${path}`
  }

  /** Clients that have a session at the path now. */
  sessions(path: string): number {
    return this.#streams.get(path)?.open ?? 0
  }

  /** Of each client: what it has not been given yet, because it does not read. */
  get unreadBytes(): readonly number[] {
    return [...this.#connections].map(({ socket }) => socket.writableLength)
  }

  /** Cuts every client off, as a crash does; new ones are served. */
  cutAll(): void {
    for (const connection of [...this.#connections]) connection.close()
  }

  /** Idempotent. It may be started again, at the same port. */
  async stop(): Promise<void> {
    this.cutAll()
    if (!this.#server.listening) return
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #accept(socket: Socket): void {
    const connection = new RtspConnection(socket, (path) => this.#streams.get(path), this.sessionSeconds)
    this.#connections.add(connection)
    socket.once('close', () => this.#connections.delete(connection))
  }
}
