import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import type { SentPictureSource } from '../vision/frame-source.js'
import { delay, unlessAborted } from '../lifecycle/delay.js'
import type { AddressPolicy, Nearness } from '../lifecycle/address-policy.js'
import { connectionFailure } from './camera-connection.js'
import type { LoginMemory } from './camera-login.js'
import type { Failure } from './failure-reason.js'
import { HttpClient, type CameraAnswer } from './http-client.js'
import { contentOf, contentStartBytes, typeText } from './http-content.js'
import { headerIn, httpHead, readHttpHead } from './http-head.js'
import { withHuffmanTables } from './jpeg-tables.js'
import { PictureSplitter, PictureTooLargeError, type SplitPicture } from './picture-splitter.js'

/** A stream without a picture among so many parts has none. */
const mostForeignParts = 20
/** Of pictures in other forms, which the decoder is given as JPEG. */
const quality = 95

export type PictureGateOptions = Readonly<{
  /** The camera's, with its login. */
  url: string
  policy: AddressPolicy
  /** Nearness of the camera itself: what it redirects to must not be nearer. */
  nearness: Nearness
  /** What earlier logins have taught about the camera. */
  logins?: LoginMemory
  /** A camera that ends its answer soon is not asked more often than this. */
  leastGapMs: number
  /** The camera turned out to be something else. */
  mistaken(): void
  /** It has begun to answer; called for each answer. */
  playing?(): void
  /** Ends the wait for the first picture; {@link PictureGate.close} ends all that comes behind it. */
  signal: AbortSignal
}>

/**
 * The only way of a decoder to an HTTP camera that sends single pictures (MJPEG): it is asked here, in the way of {@link HttpClient}, and its
 * pictures are handed on in one form, whatever form they come in, each as soon as it is there.
 *
 * A camera that ends its answer after some pictures is asked again, and the decoder sees nothing of it. While the decoder is not
 * connected the newest picture is kept for it; then it is read no faster than the decoder takes.
 */
export class PictureGate {
  readonly #token = randomBytes(16).toString('hex')
  readonly #server: Server
  readonly #cut = new AbortController()
  readonly #client: HttpClient
  readonly #sockets = new Set<Socket>()
  /** Tells the first picture, or why there is none. */
  #begun: (failure: Failure | undefined) => void = () => undefined
  #decoder: Socket | undefined
  #newest: Buffer | undefined
  /** The one that was handed on last, or is to be. */
  #last: SentPictureSource | undefined
  /** What is yet to be handed on of what was read. */
  #waiting: Promise<void> = Promise.resolve()
  #pictures = 0
  #problem: Failure | undefined

  private constructor(readonly options: PictureGateOptions) {
    const { url, policy, nearness, logins = {} } = options
    this.#client = new HttpClient({ url, policy, nearness, logins, signal: this.#cut.signal })
    this.#server = createServer({ noDelay: true }, (socket) => void this.#serve(socket))
    this.#server.on('error', (error) => (this.#problem = connectionFailure(error)))
  }

  /**
   * Opens the camera's stream and waits for its first picture.
   *
   * @throws what the signal aborts with; what the system has against a port of our own.
   */
  static async open(options: PictureGateOptions): Promise<PictureGate | Failure> {
    const gate = new PictureGate(options)
    try {
      gate.#server.listen(0, '127.0.0.1')
      await once(gate.#server, 'listening')
      const begun = new Promise<Failure | undefined>((resolve) => (gate.#begun = resolve))
      void gate.#read()
      const failure = await unlessAborted(begun, options.signal)
      if (failure === undefined) return gate
      await gate.close()
      return failure
    } catch (error) {
      await gate.close()
      throw error
    }
  }

  /** The camera's stream as the decoder may have it. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${this.#token}`
  }

  /** The newest picture, as a JPEG; undefined where none has come. */
  get sentPicture(): SentPictureSource | undefined {
    return this.#last
  }

  /** Why the stream ended; undefined while it goes on. */
  get problem(): Failure | undefined {
    return this.#problem
  }

  /** With the camera's name in place of this gate's. */
  plain(text: string): string {
    const { protocol, host } = new URL(this.options.url)
    return text.replaceAll(/http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}/g, `${protocol}//${host}`)
  }

  close(): Promise<void> {
    this.#cut.abort()
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    return Promise.resolve()
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => undefined)
    const head = await readHttpHead(socket)
    // No page of a browser that found the port.
    if (head?.first.startsWith(`GET /${this.#token} `) !== true || this.#decoder !== undefined)
      return void socket.destroy()
    socket.resume()
    socket.write(
      httpHead('HTTP/1.1 200 OK', [['Content-Type', 'multipart/x-mixed-replace;boundary=picture']]),
    )
    this.#decoder = socket
    socket.once('close', () => this.#cut.abort())
    if (this.#newest !== undefined) this.#send(this.#newest)
    this.#newest = undefined
    if (this.#problem !== undefined) socket.end()
  }

  /** Until there is a problem, or the gate is closed. */
  async #read(): Promise<void> {
    while (this.#problem === undefined && !this.#cut.signal.aborted) {
      const askedMs = nowMs()
      const problem = await this.#readAnswer()
      // Behind its end all connections are closed, which is no fault of the camera.
      if (this.#cut.signal.aborted) break
      this.#problem = problem
      if (problem === undefined)
        await delay(Math.max(0, askedMs + this.options.leastGapMs - nowMs()), this.#cut.signal)
    }
    this.#begun(this.#problem)
    this.#decoder?.end()
  }

  /** @returns why there is no use in asking again. */
  async #readAnswer(): Promise<Failure | undefined> {
    const answer = await this.#client.get()
    if ('reason' in answer) return answer
    this.options.playing?.()
    const before = this.#pictures
    try {
      const failure = await this.#readPictures(answer)
      if (failure !== undefined || this.#pictures > before || this.#cut.signal.aborted) return failure
      return { reason: 'the camera ended its stream without a picture', retry: 'normal' }
    } catch (error) {
      if (error instanceof PictureTooLargeError) return { reason: error.message, retry: 'slow' }
      return { reason: `the stream cannot be read: ${(error as Error).message}`, retry: 'normal' }
    } finally {
      answer.leave()
    }
  }

  async #readPictures({ head, body }: CameraAnswer): Promise<Failure | undefined> {
    const splitter = new PictureSplitter((picture) => this.#picture(picture), headerIn(head, 'content-type'))
    let start: Buffer | undefined = Buffer.alloc(0)
    for await (const chunk of body.bytes()) {
      if (start !== undefined) start = Buffer.concat([start, chunk.subarray(0, contentStartBytes)])
      if (start !== undefined && start.length >= contentStartBytes) {
        const content = contentOf(head, start)
        if (content !== 'pictures' && content !== 'snapshot') {
          this.options.mistaken()
          return noPictures(typeText(head))
        }
        start = undefined
      }
      splitter.write(chunk)
      const { parts, type } = splitter.foreign
      if (this.#pictures === 0 && parts > mostForeignParts) return noPictures(`parts of ${type}`)
      await this.#waiting
    }
    return undefined
  }

  #picture({ kind, bytes, isCut }: SplitPicture): void {
    const own = Buffer.from(bytes)
    this.#pictures += 1
    if (kind === 'jpeg') return this.#handOn(withHuffmanTables(own))
    if (isCut) return
    this.#waiting = this.#waiting.then(async () => {
      const { default: sharp } = await import('../lifecycle/sharp.js')
      const jpeg = await sharp(own)
        .jpeg({ quality, chromaSubsampling: '4:4:4' })
        .toBuffer()
        .catch(() => undefined)
      if (jpeg !== undefined) this.#handOn(jpeg)
    })
  }

  #handOn(jpeg: Buffer): void {
    this.#last = { kind: 'still', bytes: jpeg, capturedAtMs: wallMs() }
    if (this.#decoder === undefined) this.#newest = jpeg
    else this.#send(jpeg)
    this.#begun(undefined)
  }

  #send(jpeg: Buffer): void {
    const decoder = this.#decoder
    if (decoder?.writable !== true) return
    const head = `--picture\r\nContent-Type: image/jpeg\r\nContent-Length: ${jpeg.length}\r\n\r\n`
    decoder.cork()
    decoder.write(head)
    decoder.write(jpeg)
    const isTaken = decoder.write('\r\n')
    decoder.uncork()
    if (isTaken) return
    this.#waiting = this.#waiting.then(async () => {
      if (!decoder.writableNeedDrain || decoder.destroyed) return
      await new Promise<void>((resolve) => {
        decoder.once('drain', resolve)
        decoder.once('close', resolve)
      })
    })
  }
}

function noPictures(type: string): Failure {
  return { reason: `the camera sends ${type}, not pictures`, retry: 'normal' }
}
