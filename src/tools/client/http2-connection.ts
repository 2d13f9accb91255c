import { HpackDecoder, type HeaderFields } from './hpack-decoder.js'
import { HpackEncoder } from './hpack-encoder.js'
import type { HeaderField } from './hpack-tables.js'
import {
  frameFlags,
  http2HeadBytes,
  frameOf,
  Http2FrameReader,
  type FrameSink,
  frameTypes,
  mostFrameBytes,
  numbersFrame,
  settingNames,
  settingsFrame,
  settingsIn,
  withoutPadding,
  writeHttp2Head,
} from './http2-frames.js'
import { Http2SyntaxError } from './http2-syntax-error.js'
import { serverSocket, type ServerSocket, type ServerTrust } from './server-socket.js'
import type { ServerTarget } from './server-url.js'

/** Told what comes back on a stream; one of `end` and `failed` is the last call. */
export interface StreamListener {
  /** The head of the answer, then its trailers. */
  headers(fields: HeaderFields): void
  /** `bytes` belong to the listener. */
  data(bytes: Buffer): void
  end(): void
  /** @param isUntouched - the server says that it did nothing of it: it may be sent again, on another connection. */
  failed(cause: Error | undefined, isUntouched: boolean): void
}

/** A request that is whole, and what of it has not been sent. */
export type Http2Stream = {
  /** 0 until it is sent. */
  id: number
  readonly fields: readonly HeaderField[]
  readonly body: readonly Uint8Array[]
  readonly listener: StreamListener
  /** That the server takes of this stream; may be negative. */
  windowBytes: number
  /** Where the rest begins. */
  chunk: number
  offset: number
  leftBytes: number
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
/** The largest there is: what comes is taken at once, so that there is nothing to hold back. */
const windowBytes = 2 ** 31 - 1
const usualWindowBytes = 65_535
/** Leave for this much more is given at once. */
const renewedBytes = 2 ** 30
const lastStream = 2 ** 31 - 1
/** Every side takes frames of this size. */
const leastFrameBytes = 16_384
const mostHeaderBytes = 64 * 1024
/** Up to this size a request is copied into one piece: that costs less than one more to write. */
const onePieceBytes = 32 * 1024

const noError = 0
const refusedStream = 7
const cancel = 8

/**
 * A client's side of one connection of HTTP/2, for requests that are whole when they are sent. For load: with Node's own a request costs
 * several times as much, and so more than what is measured (docs/benchmarks.md). RFC 9113.
 */
export class Http2Connection implements FrameSink {
  readonly #socket: ServerSocket
  readonly #reader = new Http2FrameReader(this)
  readonly #encoder = new HpackEncoder()
  readonly #decoder = new HpackDecoder()
  readonly #streams = new Map<number, Http2Stream>()
  /** Not sent yet: the settings of the server have not come, or it has as many as it takes. */
  #waiting: Http2Stream[] = []
  /** Sent in part. */
  readonly #held = new Set<Http2Stream>()
  #nextId = 1
  #isEstablished = false
  #isClosing = false
  #cause: Error | undefined
  #receivedBytes = 0
  /** A block of headers that goes on in further frames. */
  #block: { stream: number; endsStream: boolean; parts: Buffer[]; bytes: number } | undefined
  // What the server takes.
  #windowBytes = usualWindowBytes
  #streamWindowBytes = usualWindowBytes
  #frameBytes = leastFrameBytes
  #mostStreams = lastStream

  constructor(target: ServerTarget, trust: ServerTrust) {
    const socket = serverSocket(target, trust, 'h2')
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error: Error) => (this.#cause ??= error))
    socket.once('close', () => this.#closed())
    const settings = {
      enablePush: 0,
      initialWindowBytes: windowBytes,
      mostFrameBytes,
    }
    const window = numbersFrame(frameTypes.windowUpdate, 0, windowBytes - usualWindowBytes)
    socket.write(Buffer.concat([preface, settingsFrame(settings), window]))
  }

  /** The server has answered, as one that speaks HTTP/2. */
  get isEstablished(): boolean {
    return this.#isEstablished
  }

  /** Takes further requests. */
  get isOpen(): boolean {
    return !this.#isClosing && this.#nextId < lastStream && !this.#socket.destroyed
  }

  /**
   * Sends a request as soon as the server takes it; only while {@link isOpen}.
   *
   * @param fields - the same list for the same fields. @param body - not empty, and not changed until the stream is over.
   */
  request(
    fields: readonly HeaderField[],
    body: readonly Uint8Array[],
    listener: StreamListener,
  ): Http2Stream {
    const leftBytes =
      body.length === 1 ? body[0]!.byteLength : body.reduce((sum, each) => sum + each.byteLength, 0)
    const stream = { id: 0, fields, body, listener, windowBytes: 0, chunk: 0, offset: 0, leftBytes }
    if (this.#isEstablished && this.#streams.size < this.#mostStreams) this.#begin(stream)
    else this.#waiting.push(stream)
    return stream
  }

  /** Nothing more is told of a stream. */
  cancel(stream: Http2Stream): void {
    this.#waiting = this.#waiting.filter((other) => other !== stream)
    if (this.#forget(stream)) this.#reset(stream, cancel)
  }

  /** Ends when nothing is under way. */
  closeWhenIdle(): void {
    this.#isClosing = true
    this.#endIfIdle()
  }

  close(): void {
    this.#isClosing = true
    this.#socket.destroy()
  }

  data(id: number, bytes: Buffer, flowBytes: number, isEnd: boolean): void {
    this.#receivedBytes += flowBytes
    if (this.#receivedBytes >= renewedBytes) {
      this.#socket.write(numbersFrame(frameTypes.windowUpdate, 0, this.#receivedBytes))
      this.#receivedBytes = 0
    }
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    if (bytes.length > 0) stream.listener.data(bytes)
    if (isEnd) this.#ended(stream)
  }

  frame(type: number, flags: number, id: number, payload: Buffer): void {
    if (!this.#isEstablished && type !== frameTypes.settings)
      throw new Http2SyntaxError('its settings do not come first')
    if (this.#block !== undefined && (type !== frameTypes.continuation || this.#block.stream !== id))
      throw new Http2SyntaxError('a block of headers is broken off')
    switch (type) {
      case frameTypes.headers: {
        const padded = withoutPadding(flags, payload)
        const part = (flags & frameFlags.priority) === 0 ? padded : padded.subarray(5)
        this.#block = { stream: id, endsStream: (flags & frameFlags.endStream) !== 0, parts: [], bytes: 0 }
        return this.#headers(flags, part)
      }
      case frameTypes.continuation:
        return this.#headers(flags, payload)
      case frameTypes.settings:
        return (flags & frameFlags.ack) === 0 ? this.#settings(payload) : undefined
      case frameTypes.windowUpdate:
        return this.#windowUpdate(id, numberIn(payload, 0) & 0x7fffffff)
      case frameTypes.ping:
        if ((flags & frameFlags.ack) === 0)
          this.#socket.write(frameOf(frameTypes.ping, frameFlags.ack, 0, payload))
        return
      case frameTypes.resetStream:
        return this.#wasReset(id, numberIn(payload, 0))
      case frameTypes.goAway:
        return this.#goAway(numberIn(payload, 0) & 0x7fffffff, numberIn(payload, 4))
      case frameTypes.pushPromise:
        throw new Http2SyntaxError('it sends what nobody asked for')
      default:
      // Frames of other kinds are to be passed over.
    }
  }

  #read(chunk: Buffer): void {
    const socket = this.#socket
    // What is sent in answer to this chunk goes out in one piece.
    socket.cork()
    try {
      this.#reader.read(chunk)
    } catch (error) {
      if (!(error instanceof Http2SyntaxError)) throw error
      this.#cause ??= this.#isEstablished ? error : new Http2SyntaxError('it does not speak HTTP/2')
      this.close()
    } finally {
      socket.uncork()
    }
  }

  #headers(flags: number, part: Buffer): void {
    const block = this.#block
    if (block === undefined) throw new Http2SyntaxError('headers go on that have not begun')
    block.bytes += part.length
    if (block.bytes > mostHeaderBytes) throw new Http2SyntaxError('its headers are longer than they may be')
    const isWhole = (flags & frameFlags.endHeaders) !== 0
    // A frame is borrowed.
    block.parts.push(isWhole ? part : Buffer.from(part))
    if (!isWhole) return
    this.#block = undefined
    const [only = part, ...more] = block.parts
    // Also of a stream that is over: later blocks build on it.
    const fields = this.#decoder.read(more.length === 0 ? only : Buffer.concat(block.parts))
    const stream = this.#streams.get(block.stream)
    if (stream === undefined) return
    // 1xx: another head follows.
    if (fields.get(':status')?.startsWith('1') !== true) stream.listener.headers(fields)
    if (block.endsStream) this.#ended(stream)
  }

  #settings(payload: Buffer): void {
    const settings = settingsIn(payload)
    const tableBytes = settings.get(settingNames.headerTableBytes)
    if (tableBytes !== undefined) this.#encoder.setTable(tableBytes)
    this.#frameBytes = settings.get(settingNames.mostFrameBytes) ?? this.#frameBytes
    if (this.#frameBytes < leastFrameBytes) throw new Http2SyntaxError('it takes no frames of the usual size')
    this.#mostStreams = settings.get(settingNames.mostStreams) ?? this.#mostStreams
    const window = settings.get(settingNames.initialWindowBytes) ?? this.#streamWindowBytes
    for (const stream of this.#streams.values()) stream.windowBytes += window - this.#streamWindowBytes
    this.#streamWindowBytes = window
    this.#socket.write(frameOf(frameTypes.settings, frameFlags.ack, 0, Buffer.alloc(0)))
    this.#isEstablished = true
    this.#goOn()
  }

  #windowUpdate(id: number, bytes: number): void {
    if (id === 0) {
      this.#windowBytes += bytes
      this.#goOn()
      return
    }
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    stream.windowBytes += bytes
    if (this.#held.has(stream)) this.#send(stream)
  }

  #wasReset(id: number, code: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    this.#forget(stream)
    stream.listener.failed(new Error(`it reset the request (code ${code} of HTTP/2)`), code === refusedStream)
    this.#goOn()
  }

  /** The server takes no further requests; those up to `last` may still be answered. */
  #goAway(last: number, code: number): void {
    this.#isClosing = true
    if (code !== noError) this.#cause ??= new Error(`it ended the connection (code ${code} of HTTP/2)`)
    const untouched = [...this.#streams.values()].filter(({ id }) => id > last)
    for (const stream of untouched) this.#forget(stream)
    for (const { listener } of [...untouched, ...this.#waiting.splice(0)]) listener.failed(this.#cause, true)
    this.#endIfIdle()
  }

  #ended(stream: Http2Stream): void {
    // Nobody reads the rest of a request that is answered already.
    if (stream.leftBytes > 0) this.#reset(stream, cancel)
    this.#forget(stream)
    stream.listener.end()
    if (this.#waiting.length > 0) this.#goOn()
    if (this.#isClosing) this.#endIfIdle()
  }

  #closed(): void {
    this.#isClosing = true
    const all = [...this.#streams.values(), ...this.#waiting.splice(0)]
    this.#streams.clear()
    this.#held.clear()
    for (const { listener } of all) listener.failed(this.#cause, false)
  }

  #forget(stream: Http2Stream): boolean {
    this.#held.delete(stream)
    return this.#streams.delete(stream.id)
  }

  #reset({ id }: Http2Stream, code: number): void {
    this.#socket.write(numbersFrame(frameTypes.resetStream, id, code))
  }

  #endIfIdle(): void {
    if (this.#streams.size > 0 || this.#waiting.length > 0 || this.#socket.destroyed) return
    this.#socket.end(numbersFrame(frameTypes.goAway, 0, 0, noError))
    this.#socket.destroySoon()
  }

  /** Sends what now may be sent. */
  #goOn(): void {
    for (const stream of this.#held) this.#send(stream)
    while (this.#isEstablished && this.#waiting.length > 0 && this.#streams.size < this.#mostStreams)
      this.#begin(this.#waiting.shift()!)
  }

  #begin(stream: Http2Stream): void {
    stream.id = this.#nextId
    this.#nextId += 2
    stream.windowBytes = this.#streamWindowBytes
    this.#streams.set(stream.id, stream)
    const block = this.#encoder.block(stream.fields)
    const { leftBytes, body } = stream
    const fits = leftBytes <= Math.min(this.#windowBytes, stream.windowBytes, this.#frameBytes)
    if (body.length > 1 || !fits || leftBytes > onePieceBytes || block.length > this.#frameBytes) {
      this.#sendHead(stream, block)
      this.#send(stream)
      return
    }
    const { headers, data } = frameTypes
    const piece = Buffer.allocUnsafe(2 * http2HeadBytes + block.length + leftBytes)
    let at = writeHttp2Head(piece, 0, block.length, headers, frameFlags.endHeaders, stream.id)
    piece.set(block, at)
    at = writeHttp2Head(piece, at + block.length, leftBytes, data, frameFlags.endStream, stream.id)
    piece.set(body[0]!, at)
    this.#sent(stream, leftBytes)
    this.#socket.write(piece)
  }

  #sendHead({ id }: Http2Stream, block: Buffer): void {
    for (let at = 0; at < block.length; at += this.#frameBytes) {
      const part = block.subarray(at, at + this.#frameBytes)
      const type = at === 0 ? frameTypes.headers : frameTypes.continuation
      const flags = at + part.length === block.length ? frameFlags.endHeaders : 0
      this.#socket.write(frameOf(type, flags, id, part))
    }
  }

  /** As much of the rest as the server takes. */
  #send(stream: Http2Stream): void {
    const socket = this.#socket
    socket.cork()
    while (stream.leftBytes > 0) {
      const chunk = stream.body[stream.chunk]!
      const most = Math.min(this.#windowBytes, stream.windowBytes, this.#frameBytes)
      const bytes = Math.min(most, chunk.byteLength - stream.offset)
      if (most <= 0) break
      const part = chunk.subarray(stream.offset, stream.offset + bytes)
      this.#sent(stream, bytes)
      stream.offset += bytes
      if (stream.offset === chunk.byteLength) {
        stream.chunk += 1
        stream.offset = 0
      }
      const flags = stream.leftBytes === 0 ? frameFlags.endStream : 0
      const head = Buffer.allocUnsafe(http2HeadBytes)
      writeHttp2Head(head, 0, bytes, frameTypes.data, flags, stream.id)
      socket.write(head)
      socket.write(part)
    }
    socket.uncork()
    if (stream.leftBytes > 0) this.#held.add(stream)
    else this.#held.delete(stream)
  }

  #sent(stream: Http2Stream, bytes: number): void {
    this.#windowBytes -= bytes
    stream.windowBytes -= bytes
    stream.leftBytes -= bytes
  }
}

/** @throws Http2SyntaxError */
function numberIn(payload: Buffer, at: number): number {
  if (payload.length < at + 4) throw new Http2SyntaxError('a frame of HTTP/2 is too short')
  return payload.readUInt32BE(at)
}
