import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorCode } from '../errors.js'
import { HttpError } from './errors.js'
import { problemMediaType, toProblem } from './problem.js'
import { securityHeaders } from './security-headers.js'

const causes: Readonly<Record<string, readonly [status: number, code: ErrorCode, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'GANTRY_TOO_LARGE', 'path and headers of the request are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'GANTRY_BAD_REQUEST', 'the request did not come to its end in time'],
}

class UnreadableRequestError extends HttpError {
  readonly code: ErrorCode
  readonly status: number
  readonly hint = 'Send HTTP/1.1 with at most 16 KiB of headers.'
  constructor(cause: Error & { code?: string }) {
    const [status, code, message] = causes[cause.code ?? ''] ?? [
      400,
      'GANTRY_BAD_REQUEST',
      'the request is not HTTP, or names an unknown method',
    ]
    super(message, { cause })
    this.name = 'UnreadableRequestError'
    this.status = status
    this.code = code
  }
}

/** Answers what never became a request in the form of every other error, and closes the connection. */
export function answerUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const { problem } = toProblem(new UnreadableRequestError(error))
  const body = JSON.stringify(problem)
  const headers = {
    ...securityHeaders,
    'content-type': problemMediaType,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`)
  socket.destroySoon()
}
