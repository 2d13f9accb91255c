import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest'
import { readProxyHeader } from '../../../src/api/proxy-header.js'
import type { DoorPort } from '../../../src/processes/tls-door/protocol.js'
import { TlsDoor } from '../../../src/processes/tls-door/tls-door.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { TestAuthority } from '../../support/test-authority.js'
import { until } from '../../support/until.js'

let authority: TestAuthority
let material: Readonly<{ cert: string; key: string }>

beforeAll(() => {
  authority = new TestAuthority()
  const { cert, key } = authority.issue('door')
  material = { cert: authority.text(cert), key: authority.text(key) }
})

afterAll(() => authority.remove())

let arrived: Socket[]
let socketPath: string

beforeEach(async () => {
  arrived = []
  socketPath = join(tempDir(), 'door.sock')
  const control: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    arrived.push(socket)
  })
  await new Promise<void>((resolve) => control.listen(socketPath, resolve))
  onTestFinished(() => {
    control.close()
    for (const socket of arrived) socket.destroy()
  })
})

function doorOf(port: Partial<DoorPort>, ca?: string): TlsDoor {
  return new TlsDoor(
    {
      host: '127.0.0.1',
      ports: [{ setting: 'httpPort', port: 0, socketPath, maxConnections: 8, ...port }],
      material: { ...material, ...(ca !== undefined && { ca }) },
      log: { level: 'info', format: 'json' },
    },
    silentLog(),
  )
}

async function opened(maxConnections = 8, ca?: string) {
  const door = doorOf({ maxConnections }, ca)
  onTestFinished(() => door.stop(0))
  const [port = 0] = await door.listen()
  return { door, port }
}

async function client(port: number, more: object = {}): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port, ca: authority.text(authority.ca), ...more })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
  socket.on('error', () => undefined)
  return socket
}

const far = (at = 0): Promise<Socket> => until('the connection', () => arrived[at])

it('brings what is inside, behind who it is from', async () => {
  const { port } = await opened()
  const near = await client(port)
  near.write('hello')
  const socket = await far()
  let seen = Buffer.alloc(0)
  socket.on('data', (data: Buffer) => (seen = Buffer.concat([seen, data])))
  const header = await until('all of it', () => {
    const read = readProxyHeader(seen)
    return read && seen.length === read.bytes + 5 ? read : undefined
  })
  expect(header.peer).toEqual({ address: '127.0.0.1', port: near.localPort })
  expect(seen.toString('utf8', header.bytes)).toBe('hello')
})

it('tells the subject of a certificate that was found good', async () => {
  const { cert, key } = authority.issue('robot 7')
  const { port } = await opened(8, authority.text(authority.ca))
  await client(port, { cert: authority.text(cert), key: authority.text(key) })
  const [data] = (await once(await far(), 'data')) as [Buffer]
  expect(readProxyHeader(data)?.peer.subject).toBe('CN=robot 7')
})

it('lets an answer come after the end of the question', async () => {
  const { port } = await opened()
  const near = await client(port, { allowHalfOpen: true })
  near.end('question')
  const socket = await far()
  await once(socket.resume(), 'end')
  const answer = once(near, 'data')
  socket.end('answer')
  expect(String(await answer)).toBe('answer')
  await once(near, 'end')
})

it('delivers all of a large answer before the end', async () => {
  const { port } = await opened()
  const near = await client(port)
  const answer = Buffer.alloc(20_000_000, 7)
  ;(await far()).resume().end(answer)
  let bytes = 0
  near.on('data', (data: Buffer) => (bytes += data.length))
  await once(near, 'close')
  expect(bytes).toBe(answer.length)
})

it('cuts both when one is cut', async () => {
  const { door, port } = await opened()
  const near = await client(port)
  const gone = once(near, 'close')
  ;(await far()).destroy()
  await gone
  const other = await client(port)
  const socket = await far(1)
  socket.once('end', () => socket.end())
  const closed = once(socket.resume(), 'close')
  other.destroy()
  await closed
  await until('none', () => door.reading().connections === 0)
})

it('S26: takes no more connections than it may, and counts the others', async () => {
  const { door, port } = await opened(1)
  const near = await client(port)
  const second = connect(port, '127.0.0.1')
  second.on('error', () => undefined)
  await once(second, 'close')
  expect(door.reading()).toMatchObject({ connections: 1, accepted: 1, refused: { full: 1 } })
  const socket = await far()
  socket.once('end', () => socket.end()).resume()
  near.destroy()
  await until('room', () => door.reading().connections === 0)
  await client(port)
})

it('S26: is not held up by who says nothing, says half of it, or goes away', async () => {
  const { door, port } = await opened()
  const silent = connect(port, '127.0.0.1')
  onTestFinished(() => void silent.destroy())
  const half = connect(port, '127.0.0.1')
  half.write(Buffer.from('1603010200', 'hex'))
  onTestFinished(() => void half.destroy())
  await until('both', () => door.reading().connections === 2)
  const gone = connect(port, '127.0.0.1')
  await until('three', () => door.reading().connections === 3)
  gone.destroy()
  await until('two', () => door.reading().connections === 2)
  await client(port)
  expect(door.reading().refused).toEqual({})
})

it('ends by itself what is open when it is stopped', async () => {
  const { door, port } = await opened()
  const closed = once(await client(port), 'close')
  await door.stop(10)
  await closed
  const [error] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException]
  expect(error.code).toBe('ECONNREFUSED')
})

it('refuses a port that is taken, with the setting', async () => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void taken.close())
  const { port } = taken.address() as { port: number }
  await expect(doorOf({ setting: 'metricsPort', port }).listen()).rejects.toMatchObject({
    code: 'GANTRY_PORT_IN_USE',
    hint: expect.stringContaining('server.metricsPort') as unknown,
  })
})
