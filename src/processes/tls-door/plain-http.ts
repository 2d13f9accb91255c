import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { BadRequestError } from '../../api/errors.js'
import { problemMediaType, toProblem } from '../../api/problem.js'

/** Longest that a client may take to read the answer. */
const readAtMostMs = 2_000

/** Tells a client that speaks plain HTTP what this port speaks; anything else is cut. @param head - what was read of it. */
export function refusePlain(socket: Socket, head: Buffer): void {
  if (!/^[A-Z]+ /.test(head.toString('latin1', 0, 16))) return void socket.destroy()
  const host = /^host: *([^\s]+)/im.exec(head.toString('latin1', 0, 4_096))?.[1]
  const { problem } = toProblem(
    new BadRequestError(
      'this port speaks TLS, and the request came by plain HTTP',
      [],
      `Ask by https://${host ?? ''}${host === undefined ? '' : '/'}, and streams by wss://.`,
    ),
  )
  const body = JSON.stringify(problem)
  const lines = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    `content-type: ${problemMediaType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  // What the client still sends is read: unread bytes would have the kernel reset the connection, with the answer in it.
  socket.resume()
  socket.setTimeout(readAtMostMs, () => socket.destroy())
  setTimeout(() => socket.destroy(), readAtMostMs).unref()
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`)
}
