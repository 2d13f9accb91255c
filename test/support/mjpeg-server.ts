import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MjpegForm } from './mjpeg-forms.js'
import { nowMs } from '../../src/lifecycle/clock.js'
import { startHttpServer, startRawServer, type TestServer } from './http-server.js'

export type MjpegHabits = Readonly<{
  everyMs?: number
  /** Closes the answer behind so many pictures. */
  closesAfter?: number
  /** Wire form; in chunks by HTTP/1.1 where it is absent. */
  as?: 'HTTP/1.0' | 'until closed'
  /** Asked before each answer; false where it has answered itself. */
  admits?: (request: IncomingMessage, response: ServerResponse) => boolean
}>

/** When each picture was sent, by {@link nowMs}. */
export type MjpegServer = TestServer & Readonly<{ sentMs: readonly number[] }>

/** Sends pictures one after the other, again and again, each complete when its time has come, and what is between them with the next. */
export async function startMjpegServer(
  form: MjpegForm,
  pictures: readonly Buffer[],
  { everyMs = 100, closesAfter, as, admits }: MjpegHabits = {},
): Promise<MjpegServer> {
  const sentMs: number[] = []
  const upTo = (count: number) =>
    form.bytes(Array.from({ length: count }, (_, index) => pictures[index % pictures.length] as Buffer))
  const pieces = Array.from({ length: 3 * pictures.length }, (_, index) =>
    upTo(index + 1).subarray(index === 0 ? 0 : upTo(index).length),
  )
  const send = (write: (piece: Buffer) => void, end: () => void) => {
    let sent = 0
    const next = () => {
      // From the second round on all pieces are alike.
      const at = sent < pictures.length ? sent : pictures.length + (sent % pictures.length)
      write(pieces[at] as Buffer)
      sentMs.push(nowMs())
      sent += 1
      if (sent === closesAfter) end()
    }
    next()
    return setInterval(next, everyMs)
  }
  const type = form.type === undefined ? '' : `Content-Type: ${form.type}\r\n`
  if (as !== undefined) {
    const raw = await startRawServer((_head, socket) => {
      socket.write(`${as === 'HTTP/1.0' ? as : 'HTTP/1.1'} 200 OK\r\nServer: cam\r\n${type}\r\n`)
      const timer = send(
        (piece) => socket.write(piece),
        () => socket.end(),
      )
      socket.once('close', () => clearInterval(timer))
    })
    return { ...raw, sentMs }
  }
  const server = await startHttpServer((request, response) => {
    if (admits?.(request, response) === false) return
    response.writeHead(200, form.type === undefined ? {} : { 'content-type': form.type })
    const timer = send(
      (piece) => response.write(piece),
      () => response.end(),
    )
    response.once('close', () => clearInterval(timer))
  })
  return { ...server, sentMs }
}
