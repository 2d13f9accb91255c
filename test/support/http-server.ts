import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcp, type AddressInfo, type Server, type Socket } from 'node:net'

/** A server on a free port of loopback, which counts what it is asked. */
export type TestServer = Readonly<{
  port: number
  base: string
  /** Connections so far, and those that are open. */
  connections: () => Readonly<{ all: number; open: number }>
  close: () => Promise<void>
}>

export async function startHttpServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  host = '127.0.0.1',
): Promise<TestServer> {
  return listening(createHttp(answer), host)
}

/** One that writes what it likes: `answer` is called for each request, with its head. */
export async function startRawServer(answer: (head: string, socket: Socket) => void): Promise<TestServer> {
  const server = createTcp((socket) => {
    socket.on('error', () => undefined)
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end)
        text = text.slice(end + 4)
        answer(head, socket)
      }
    })
  })
  return listening(server, '127.0.0.1')
}

async function listening(server: Server, host: string): Promise<TestServer> {
  const open = new Set<Socket>()
  let all = 0
  server.on('connection', (socket: Socket) => {
    all += 1
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    base: `http://${host}:${port}`,
    connections: () => ({ all, open: open.size }),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}
