import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { problemMediaType, toProblem } from './problem.js'
import { securityHeaders } from './security-headers.js'

/** Answers an upgrade request with a problem, and ends the connection: there is no response object that could. */
export function refuseUpgrade(socket: Duplex, error: unknown): void {
  const { problem, headers } = toProblem(error)
  const body = JSON.stringify(problem)
  const lines = Object.entries({
    ...securityHeaders,
    ...headers,
    'content-type': problemMediaType,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`)
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('\r\n')}\r\n\r\n${body}`,
  )
}
