import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { once } from 'node:events'

export type RawAnswer = Readonly<{ status: number; json: unknown; text: string }>

/** Bytes to write in order; each waits until the one before went out. */
export type Pieces = Iterable<string | Uint8Array, void> | AsyncIterable<string | Uint8Array, void>

/**
 * Writes bytes as they are, with no client in between, and reads until the other side closes. What it closes on while bytes are still
 * written is no error.
 */
export async function exchange(to: NetConnectOpts, pieces: Pieces): Promise<RawAnswer> {
  const socket = connect(to)
  socket.setNoDelay(true)
  socket.on('error', () => undefined)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await Promise.race([once(socket, 'connect'), closed])
  await Promise.race([writeAll(socket, pieces), closed])
  await closed
  return parsed(Buffer.concat(chunks).toString('latin1'))
}

async function writeAll(socket: Socket, pieces: Pieces): Promise<void> {
  for await (const piece of pieces as AsyncIterable<string | Uint8Array>) {
    if (socket.destroyed) return
    if (!socket.write(piece)) await drained(socket)
  }
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      socket.off('drain', go).off('close', go)
      resolve()
    }
    socket.on('drain', go).on('close', go)
  })
}

function parsed(answer: string): RawAnswer {
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
  const [head = '', ...rest] = answer.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  const text = /transfer-encoding: chunked/i.test(head) ? unchunked(body) : body
  return { status, text, json: /json/i.test(head) && text !== '' ? (JSON.parse(text) as unknown) : undefined }
}

function unchunked(body: string): string {
  let text = ''
  for (let at = 0; ;) {
    const end = body.indexOf('\r\n', at)
    const length = Number.parseInt(body.slice(at, end), 16)
    if (!(length > 0)) return text
    text += body.slice(end + 2, end + 2 + length)
    at = end + 2 + length + 2
  }
}
