import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { constants, createGunzip, createInflate } from 'node:zlib'
import { headerIn, nextChunk, type HttpHead } from './http-head.js'

/** A list of a day's pieces has some hundred thousand bytes. */
const mostBodyBytes = 4 * 1024 * 1024

/** Longest line of the chunked form. */
const mostLineBytes = 8 * 1024

const packedAs = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate } as const

/**
 * - `open`: more may come
 * - `whole`: all of it came; the connection can be used for the next request
 * - `closed`: it came until the connection was closed, which is all that tells its end
 * - `cut`: the connection was closed before its end
 */
type BodyState = 'open' | 'whole' | 'closed' | 'cut'

/** What stands behind the head of an answer, as it comes: by length, in chunks, or until the connection is closed. */
export class HttpBody {
  /** Bytes that the head promises; undefined where it does not say. Packed, where it is packed. */
  readonly lengthBytes: number | undefined
  readonly #isChunked: boolean
  readonly #packing: keyof typeof packedAs | undefined
  #held: Buffer
  #left: number
  #state: BodyState = 'open'

  constructor(
    readonly socket: Socket,
    head: HttpHead,
  ) {
    this.#held = head.rest
    this.#isChunked = /chunked/i.test(headerIn(head, 'transfer-encoding') ?? '')
    const length = /^\d+$/.exec(headerIn(head, 'content-length') ?? '')?.[0]
    const isEmpty = /^\S+ (1\d\d|204|304)\b/.test(head.first)
    this.lengthBytes = isEmpty ? 0 : this.#isChunked || length === undefined ? undefined : Number(length)
    this.#left = this.#isChunked ? 0 : (this.lengthBytes ?? Number.POSITIVE_INFINITY)
    const packing = headerIn(head, 'content-encoding')?.toLowerCase() ?? ''
    this.#packing = packing in packedAs ? (packing as keyof typeof packedAs) : undefined
    if (isEmpty) this.#state = 'whole'
  }

  get state(): BodyState {
    return this.#state
  }

  /** Its bytes, unpacked; once. Whoever leaves before their end must leave the connection too. */
  bytes(): AsyncIterable<Buffer> {
    const plain = this.#plain()
    if (this.#packing === undefined) return plain
    const unpacker = packedAs[this.#packing]({ finishFlush: constants.Z_SYNC_FLUSH })
    const source = Readable.from(plain)
    source.on('error', (error) => unpacker.destroy(error))
    unpacker.on('close', () => source.destroy())
    return source.pipe(unpacker) as AsyncIterable<Buffer>
  }

  async *#plain(): AsyncGenerator<Buffer> {
    while (this.#state === 'open') {
      if (this.#isChunked && this.#left === 0 && !(await this.#nextChunkBegins())) return
      if (this.#left === 0) return void (this.#state = 'whole')
      const chunk = this.#held.length > 0 ? this.#held : await nextChunk(this.socket)
      if (chunk === undefined) {
        this.#state = this.#left === Number.POSITIVE_INFINITY ? 'closed' : 'cut'
        return
      }
      const own = chunk.subarray(0, Math.min(chunk.length, this.#left))
      this.#held = chunk.subarray(own.length)
      this.#left -= own.length
      yield own
    }
  }

  /** @returns false at the end of the last one. */
  async #nextChunkBegins(): Promise<boolean> {
    let line = await this.#line()
    // The line end of the chunk before.
    if (line === '') line = await this.#line()
    const length = line === undefined ? Number.NaN : Number.parseInt(line, 16)
    if (!(length >= 0)) this.#state = 'cut'
    if (!(length > 0)) {
      if (length === 0) await this.#passTrailer()
      return false
    }
    this.#left = length
    return true
  }

  async #passTrailer(): Promise<void> {
    for (let line = await this.#line(); line !== ''; line = await this.#line())
      if (line === undefined) return void (this.#state = 'closed')
    this.#state = 'whole'
  }

  async #line(): Promise<string | undefined> {
    for (;;) {
      const end = this.#held.indexOf(0x0a)
      if (end >= 0) {
        const line = this.#held.toString('latin1', 0, end).trim()
        this.#held = this.#held.subarray(end + 1)
        return line
      }
      const chunk = this.#held.length > mostLineBytes ? undefined : await nextChunk(this.socket)
      if (chunk === undefined) return undefined
      this.#held = Buffer.concat([this.#held, chunk])
    }
  }
}

/** The whole body behind a head. @returns undefined when it is longer than any play list, or garbled. */
export async function readHttpBody(socket: Socket, head: HttpHead): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of new HttpBody(socket, head).bytes()) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > mostBodyBytes) return undefined
    }
  } catch {
    return undefined
  }
  return Buffer.concat(chunks)
}
