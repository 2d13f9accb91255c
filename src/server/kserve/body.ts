import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createDeflate, createGzip, gunzip, inflate, type InputType } from 'node:zlib'
import { countCopy } from '../../serving/copied-bytes.js'
import { ServingError } from '../../serving/serving-error.js'

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
  const body = length === undefined ? new GrowingBody(maxBytes) : new SizedBody(length, headerBytes)
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

/** For bodies that do not tell their length: doubled when full, so that each byte is copied about twice at most. */
class GrowingBody {
  #bytes: Buffer = Buffer.alloc(0)
  #filled = 0

  constructor(readonly maxBytes: number) {}

  add(chunk: Buffer): boolean {
    const filled = this.#filled + chunk.byteLength
    if (filled > this.maxBytes) return false
    if (filled > this.#bytes.byteLength) this.#grow(filled)
    this.#bytes.set(chunk, this.#filled)
    countCopy(chunk.byteLength)
    this.#filled = filled
    return true
  }

  #grow(needed: number): void {
    const grown = Buffer.allocUnsafeSlow(
      Math.min(this.maxBytes, Math.max(needed, 2 * this.#bytes.byteLength, 65_536)),
    )
    grown.set(this.#bytes.subarray(0, this.#filled))
    countCopy(this.#filled)
    this.#bytes = grown
  }

  done(): Uint8Array {
    return this.#bytes.subarray(0, this.#filled)
  }
}

const unpackers = { gzip: promisify(unpacker(gunzip)), deflate: promisify(unpacker(inflate)) }

type Unpack = (
  input: InputType,
  options: { maxOutputLength: number },
  done: (error: Error | null, result: Buffer) => void,
) => void

function unpacker(unpack: Unpack): Unpack {
  return unpack
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
  try {
    return await unpackers[encoding](body, { maxOutputLength: maxBytes })
  } catch (error) {
    if (error instanceof RangeError) throw new BodyTooLargeError(maxBytes)
    throw new ServingError(
      'INVALID_ARG',
      `unable to decompress the request body as ${encoding}`,
      'OTHER',
      error,
    )
  }
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
