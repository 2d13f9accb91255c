import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createDeflate, createGunzip, createGzip, createInflate } from 'node:zlib'
import { copyAllInTurns, countCopy } from '../../tensors/tensor-buffers.js'
import { ServingError } from '../../tensors/serving-error.js'

/** A body that is larger than the server takes. */
export class BodyTooLargeError extends Error {
  readonly statusCode = 413
  constructor(readonly maxBytes: number) {
    super(`request body exceeds the maximum allowed size of ${maxBytes} bytes`)
    this.name = 'BodyTooLargeError'
  }
}

/**
 * The whole body. One that came in one piece is given as it came, without a copy; others are copied once, into their place.
 *
 * @param headerBytes - what follows so many bytes lies aligned for every type, if the body is copied.
 * @throws BodyTooLargeError before more than `maxBytes` were kept; ServingError `CANCELLED` when the client is gone
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  headerBytes = 0,
): Promise<Uint8Array> {
  const declared = request.headers['content-length']
  const length = declared === undefined ? undefined : Number(declared)
  if (length === 0) return new Uint8Array(0)
  if (length !== undefined && length > maxBytes) throw new BodyTooLargeError(maxBytes)
  const body = length === undefined ? new BodyInBlocks(maxBytes) : new SizedBody(length, headerBytes)
  return new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      if (!body.add(chunk)) {
        request.pause()
        request.removeAllListeners('data')
        reject(new BodyTooLargeError(maxBytes))
      }
    })
    const onGone = () => reject(gone())
    request.once('end', () => {
      request.off('error', onGone).off('close', onGone)
      resolve(body.done())
    })
    request.once('error', onGone)
    request.once('close', onGone)
  })
}

function gone(): ServingError {
  return new ServingError('CANCELLED', 'the client closed the connection', 'CANCELED')
}

class SizedBody {
  #bytes: Buffer | undefined
  #filled = 0

  constructor(
    readonly length: number,
    readonly headerBytes: number,
  ) {}

  /** Node ends a body at its declared length, so that it always fits. */
  add(chunk: Buffer): boolean {
    if (this.#bytes === undefined && chunk.byteLength === this.length) {
      this.#bytes = chunk
    } else {
      this.#bytes ??= this.#allocate()
      this.#bytes.set(chunk, this.#filled)
      countCopy(chunk.byteLength)
    }
    this.#filled += chunk.byteLength
    return true
  }

  #allocate(): Buffer {
    const before = -this.headerBytes & 7
    return Buffer.allocUnsafeSlow(before + this.length).subarray(before)
  }

  done(): Uint8Array {
    return this.#bytes ?? new Uint8Array(0)
  }
}

/** A block is allocated and filled in a millisecond. */
const blockBytes = 1024 ** 2
/** Pieces of what is unpacked. */
const unpacking = { chunkSize: 256 * 1024 }

/** For bodies that do not tell their length: kept in blocks, and put together in the end, while the loop goes on. */
class BodyInBlocks {
  readonly #full: Buffer[] = []
  #block = Buffer.alloc(0)
  #inBlock = 0
  #bytes = 0

  constructor(readonly maxBytes: number) {}

  add(chunk: Uint8Array): boolean {
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.maxBytes) return false
    countCopy(chunk.byteLength)
    for (let from = 0; from < chunk.byteLength;) {
      if (this.#inBlock === this.#block.byteLength) this.#next(chunk.byteLength - from)
      const piece = chunk.subarray(from, from + this.#block.byteLength - this.#inBlock)
      this.#block.set(piece, this.#inBlock)
      this.#inBlock += piece.byteLength
      from += piece.byteLength
    }
    return true
  }

  /** Blocks grow with the body, up to a size that is copied in no time. */
  #next(neededBytes: number): void {
    if (this.#inBlock > 0) this.#full.push(this.#block)
    this.#block = Buffer.allocUnsafeSlow(Math.min(blockBytes, Math.max(neededBytes, this.#bytes, 65_536)))
    this.#inBlock = 0
  }

  async done(): Promise<Uint8Array> {
    const last = this.#block.subarray(0, this.#inBlock)
    if (this.#full.length === 0) return last
    const body = Buffer.allocUnsafeSlow(this.#bytes)
    countCopy(this.#bytes)
    await copyAllInTurns([...this.#full, last], body)
    return body
  }
}

export type Encoding = 'gzip' | 'deflate'

/**
 * The body as it was before it was compressed.
 *
 * @param encoding - the `Content-Encoding` of the request.
 * @throws ServingError `UNSUPPORTED` for other encodings, `INVALID_ARG` for damaged data; BodyTooLargeError for more than `maxBytes`
 */
export async function inflated(
  body: Uint8Array,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  if (encoding === undefined || encoding === '' || encoding === 'identity') return body
  if (encoding !== 'gzip' && encoding !== 'deflate')
    throw new ServingError('UNSUPPORTED', 'Unsupported compression type')
  const unpacker = encoding === 'gzip' ? createGunzip(unpacking) : createInflate(unpacking)
  unpacker.end(body)
  const unpacked = new BodyInBlocks(maxBytes)
  try {
    for await (const chunk of unpacker)
      if (!unpacked.add(chunk as Buffer)) throw new BodyTooLargeError(maxBytes)
  } catch (error) {
    if (!isDamage(error)) throw error
    throw new ServingError(
      'INVALID_ARG',
      `unable to decompress the request body as ${encoding}`,
      'OTHER',
      error,
    )
  }
  return unpacked.done()
}

/** Whether zlib found the data wrong, rather than had no memory for it, or failed in another way. */
function isDamage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'Z_DATA_ERROR' || code === 'Z_BUF_ERROR' || code === 'Z_NEED_DICT'
}

export async function deflated(parts: readonly Uint8Array[], encoding: Encoding): Promise<Uint8Array[]> {
  const packer = encoding === 'gzip' ? createGzip() : createDeflate()
  const packed: Uint8Array[] = []
  const filled = pipeline(Readable.from(parts), packer)
  for await (const chunk of packer) packed.push(chunk as Buffer)
  await filled
  return packed
}

/** The encoding of highest weight that Triton knows, the first of equals; `undefined` for none. Names and weights as Triton reads them. */
export function acceptedEncoding(header: string | undefined): Encoding | undefined {
  let best: Encoding | undefined
  let bestWeight = 0
  for (const part of (header ?? '').split(',')) {
    const [name = '', weightText] = part.trimStart().split(';q=')
    const weight = weightText === undefined ? 1 : Number.parseFloat(weightText)
    if (!(weight > bestWeight)) continue
    if (name !== 'gzip' && name !== 'deflate' && name !== 'identity') continue
    best = name === 'identity' ? undefined : name
    bestWeight = weight
  }
  return best
}
