/** A request as RTSP 1.0 writes it (RFC 2326, section 6). Header names are in lower case. */
export type RtspRequest = Readonly<{
  method: string
  url: string
  headers: ReadonlyMap<string, string>
}>

const mostBytes = 16_384

export type Parsed =
  | Readonly<{ kind: 'request'; request: RtspRequest; bytes: number }>
  /** RTP or RTCP from the client, interleaved (RFC 2326, section 10.12). */
  | Readonly<{ kind: 'interleaved'; bytes: number }>
  | Readonly<{ kind: 'more' }>
  | Readonly<{ kind: 'bad' }>

/** Reads the first message of a buffer; `bytes` is its length. */
export function parseRtsp(buffer: Buffer): Parsed {
  if (buffer.length === 0) return { kind: 'more' }
  if (buffer[0] === 0x24) {
    if (buffer.length < 4) return { kind: 'more' }
    const bytes = 4 + buffer.readUInt16BE(2)
    return buffer.length < bytes ? { kind: 'more' } : { kind: 'interleaved', bytes }
  }
  const end = buffer.indexOf('\r\n\r\n')
  if (end < 0) return buffer.length > mostBytes ? { kind: 'bad' } : { kind: 'more' }
  const [first = '', ...lines] = buffer.subarray(0, end).toString('latin1').split('\r\n')
  const match = /^([A-Z_]+) (\S+) RTSP\/1\.0$/.exec(first)
  if (!match) return { kind: 'bad' }
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()] as const
    }),
  )
  const bytes = end + 4 + Number(headers.get('content-length') ?? 0)
  if (!Number.isSafeInteger(bytes) || bytes > mostBytes) return { kind: 'bad' }
  if (buffer.length < bytes) return { kind: 'more' }
  return { kind: 'request', request: { method: match[1] ?? '', url: match[2] ?? '', headers }, bytes }
}

const reasons: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  453: 'Not Enough Bandwidth',
  454: 'Session Not Found',
  461: 'Unsupported Transport',
}

/** An answer in wire form. */
export function formatRtsp(
  status: number,
  cseq: string | undefined,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): string {
  const all = {
    ...(cseq === undefined ? {} : { CSeq: cseq }),
    ...headers,
    ...(body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `RTSP/1.0 ${status} ${reasons[status] ?? ''}\r\n${lines.join('')}\r\n${body}`
}
