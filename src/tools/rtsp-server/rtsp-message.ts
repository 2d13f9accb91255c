/** A request as RFC 2326 writes it. Header names are lower case. */
export type RtspRequest = Readonly<{ method: string; url: string; headers: ReadonlyMap<string, string> }>

/** Longest head of a request; more is no RTSP client. */
const maxHeadBytes = 16_384

/** Cuts what a client sends into requests; its RTCP reports (`$` frames) are skipped. */
export class RtspParser {
  #rest: Buffer = Buffer.alloc(0)

  constructor(readonly request: (request: RtspRequest) => void) {}

  /** @returns false when this is no RTSP. */
  write(chunk: Buffer): boolean {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    for (;;) {
      const usedBytes = this.#rest[0] === 0x24 ? this.#frameBytes() : this.#requestBytes()
      if (usedBytes === 0) return this.#rest.length <= maxHeadBytes || this.#rest[0] === 0x24
      this.#rest = this.#rest.subarray(usedBytes)
    }
  }

  #frameBytes(): number {
    if (this.#rest.length < 4) return 0
    const bytes = 4 + this.#rest.readUInt16BE(2)
    return this.#rest.length >= bytes ? bytes : 0
  }

  #requestBytes(): number {
    const end = this.#rest.indexOf('\r\n\r\n')
    if (end < 0) return 0
    const [first = '', ...lines] = this.#rest.toString('latin1', 0, end).split('\r\n')
    const [method = '', url = ''] = first.split(' ')
    const headers = new Map(
      lines.map((line): [string, string] => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const bytes = end + 4 + (Number(headers.get('content-length')) || 0)
    if (this.#rest.length < bytes) return 0
    this.request({ method, url, headers })
    return bytes
  }
}

const reasons: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  453: 'Not Enough Bandwidth',
  454: 'Session Not Found',
  461: 'Unsupported Transport',
  501: 'Not Implemented',
}

export function rtspResponse(
  status: number,
  request: RtspRequest,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): string {
  const all = {
    CSeq: request.headers.get('cseq') ?? '0',
    Server: 'gantry',
    ...headers,
    ...(body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return [`RTSP/1.0 ${status} ${reasons[status] ?? 'Error'}`, ...lines, '', body].join('\r\n')
}
