import { once } from 'node:events'
import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export type KeptAnswer = Readonly<{ status: number; headers: ReadonlyMap<string, string>; text: string }>

/** A connection of a client that writes its bytes itself, and reads one answer after the other; ended with the test. */
export class KeptConnection {
  #read = ''
  #ended = false
  /** Called when there is more to look at. */
  #more = (): void => undefined

  private constructor(readonly socket: Socket) {
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('error', () => undefined)
    socket.on('data', (text: string) => {
      this.#read += text
      this.#more()
    })
    socket.on('close', () => {
      this.#ended = true
      this.#more()
    })
  }

  static async to(address: NetConnectOpts): Promise<KeptConnection> {
    const socket = connect(address)
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    return new KeptConnection(socket)
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes, 'latin1')
  }

  /**
   * The next answer that is not 1xx.
   *
   * @param method - of the request: an answer to HEAD has no body.
   * @throws when the connection ends before it is whole.
   */
  async answer(method = 'GET'): Promise<KeptAnswer> {
    for (;;) {
      const taken = takeAnswer(this.#read, method)
      if (taken !== undefined) {
        this.#read = taken.rest
        if (taken.answer.status >= 200) return taken.answer
      } else if (this.#ended) throw new Error(`the connection ended: ${JSON.stringify(this.#read)}`)
      else await new Promise<void>((resolve) => (this.#more = resolve))
    }
  }
}

/** The first answer of what was read, once it is whole. */
function takeAnswer(read: string, method: string): { answer: KeptAnswer; rest: string } | undefined {
  const end = read.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = read.slice(0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1])
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const body = takeBody(read.slice(end + 4), status, headers, method)
  return body && { answer: { status, headers, text: body.text }, rest: body.rest }
}

function takeBody(
  read: string,
  status: number,
  headers: ReadonlyMap<string, string>,
  method: string,
): { text: string; rest: string } | undefined {
  if (status < 200 || status === 204 || status === 304 || method === 'HEAD') return { text: '', rest: read }
  if (headers.get('transfer-encoding') !== 'chunked') {
    const length = Number(headers.get('content-length') ?? 0)
    return read.length < length ? undefined : { text: read.slice(0, length), rest: read.slice(length) }
  }
  let text = ''
  for (let at = 0; ;) {
    const end = read.indexOf('\r\n', at)
    const length = Number.parseInt(read.slice(at, end), 16)
    const next = end + 2 + length + 2
    if (end < 0 || read.length < next) return undefined
    if (length === 0) return { text, rest: read.slice(next) }
    text += read.slice(end + 2, end + 2 + length)
    at = next
  }
}
