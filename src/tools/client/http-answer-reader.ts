/** An answer of HTTP/1.1 that is whole. */
export type HttpAnswer = Readonly<{
  status: number
  /** Headers as they came, without the status line. */
  head: string
  /** Empty where it was not wanted; of a refusal it is always there. */
  body: Buffer
  /** The connection may be used again. */
  keepAlive: boolean
}>

/** Bytes that are no answer of HTTP/1.1. */
export class HttpSyntaxError extends Error {
  constructor(detail: string) {
    super(detail)
    this.name = 'HttpSyntaxError'
  }
}

const mostHeadBytes = 64 * 1024
const nothing = Buffer.alloc(0)

type Framing = Readonly<{ status: number; head: string; keepAlive: boolean }>

/**
 * Reads the answers of one connection, each to one request. For load: Node's own client costs several times what the system does, and so
 * more than what is measured.
 */
export class HttpAnswerReader {
  #pending: Buffer = nothing
  #framing: Framing | undefined
  /** Of a body with a length: bytes to come. -1: it is chunked. -2: it ends with the connection. */
  #left = 0
  #kept: Buffer[] = []

  /**
   * @param chunk - belongs to the reader until the answer is whole.
   * @param keep - the body is wanted, also where it is no refusal.
   * @returns the answer when this was its last piece.
   * @throws HttpSyntaxError
   */
  read(chunk: Buffer, keep: boolean): HttpAnswer | undefined {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    this.#pending = nothing
    if (this.#framing === undefined) {
      const begun = this.#begin(rest)
      if (begun === undefined) return undefined
      rest = begun
    }
    const isKept = keep || this.#framing!.status >= 300
    if (this.#left === -1) return this.#readChunks(rest, isKept)
    if (this.#left === -2) {
      if (isKept) this.#kept.push(rest)
      return undefined
    }
    if (rest.length > this.#left) throw new HttpSyntaxError('bytes come that nobody asked for')
    this.#left -= rest.length
    if (isKept && rest.length > 0) this.#kept.push(rest)
    return this.#left === 0 ? this.#whole() : undefined
  }

  /** The connection has ended. @returns the answer that ends with it. */
  end(): HttpAnswer | undefined {
    return this.#framing !== undefined && this.#left === -2 ? this.#whole() : undefined
  }

  /** The body's first bytes, or undefined while the head is not whole. */
  #begin(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) {
      if (bytes.length > mostHeadBytes) throw new HttpSyntaxError('the head has no end')
      if (bytes.length >= 5 && bytes.toString('latin1', 0, 5) !== 'HTTP/')
        throw new HttpSyntaxError('it is not HTTP')
      this.#pending = bytes
      return undefined
    }
    const text = bytes.toString('latin1', 0, end)
    const [, minor, digits] = /^HTTP\/1\.([01]) (\d{3})/.exec(text) ?? []
    if (digits === undefined) throw new HttpSyntaxError('it is not HTTP/1.1')
    const status = Number(digits)
    const rest = bytes.subarray(end + 4)
    // 100 Continue and the like: another head follows.
    if (status < 200) return this.#begin(rest)
    const head = text.slice(text.indexOf('\r\n') + 2)
    this.#left = bodyLength(status, head)
    const closes =
      this.#left === -2 ||
      (minor === '0' ? !/^connection:\s*keep-alive/im.test(head) : /^connection:\s*close/im.test(head))
    this.#framing = { status, head, keepAlive: !closes }
    return rest
  }

  #readChunks(bytes: Buffer, keep: boolean): HttpAnswer | undefined {
    let at = 0
    for (;;) {
      const lineEnd = bytes.indexOf('\r\n', at)
      if (lineEnd < 0) break
      const line = bytes.toString('latin1', at, lineEnd)
      const size = /^[0-9a-f]+/i.test(line) ? Number.parseInt(line, 16) : NaN
      if (Number.isNaN(size)) throw new HttpSyntaxError('a chunk has no size')
      if (size === 0) {
        const end = trailerEnd(bytes, lineEnd)
        if (end < 0) break
        return this.#whole()
      }
      const next = lineEnd + 2 + size + 2
      if (next > bytes.length) break
      if (keep) this.#kept.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
      at = next
    }
    this.#pending = bytes.subarray(at)
    return undefined
  }

  #whole(): HttpAnswer {
    const [only = nothing, ...more] = this.#kept
    const body = more.length === 0 ? only : Buffer.concat(this.#kept)
    const whole = { ...this.#framing!, body }
    this.#framing = undefined
    this.#kept = []
    this.#left = 0
    return whole
  }
}

function bodyLength(status: number, head: string): number {
  if (status === 204 || status === 304) return 0
  if (/^transfer-encoding:.*chunked/im.test(head)) return -1
  const length = /^content-length:[ \t]*(\d+)/im.exec(head)?.[1]
  return length === undefined ? -2 : Number(length)
}

/** Where the trailers behind the last chunk end, -1 while they have not come. @param lineEnd - of the line of the last chunk. */
function trailerEnd(bytes: Buffer, lineEnd: number): number {
  const end = bytes.indexOf('\r\n\r\n', lineEnd)
  return end < 0 ? -1 : end + 4
}

/** The value of a header, undefined where there is none. @param name - in lower case. */
export function headerOf(head: string, name: string): string | undefined {
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':')
    if (line.slice(0, colon).toLowerCase() === name) return line.slice(colon + 1).trim()
  }
  return undefined
}
