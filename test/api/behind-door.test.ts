import { createServer } from 'node:http'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { expectPeers } from '../../src/api/behind-door.js'
import { peerOf } from '../../src/api/peer.js'
import { proxyHeader } from '../../src/api/proxy-header.js'
import { silentLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'

const peer = { address: '192.0.2.7', port: 5_000, subject: 'CN=robot' }
const request = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

async function served(atMostMs = 10_000): Promise<string> {
  const server = createServer(({ socket }, response) => {
    const { remoteAddress, remotePort, remoteFamily } = socket
    response.end(JSON.stringify({ remoteAddress, remotePort, remoteFamily, ...peerOf(socket) }))
  })
  expectPeers(server, atMostMs, silentLog())
  const path = join(tempDir(), 'a.sock')
  await new Promise<void>((resolve) => server.listen(path, resolve))
  onTestFinished(() => void server.close())
  return path
}

async function answered(path: string, ...pieces: readonly (Buffer | string)[]): Promise<string> {
  const socket = connect(path)
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  let text = ''
  socket.setEncoding('utf8').on('data', (data: string) => (text += data))
  for (const piece of pieces) {
    socket.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await once(socket, 'close')
  return text
}

it('shows the far end of a connection as its own, however it comes in pieces', async () => {
  const path = await served()
  const header = proxyHeader(peer)
  const told = { remoteAddress: '192.0.2.7', remotePort: 5_000, remoteFamily: 'IPv4', ...peer }
  const whole = Buffer.concat([header, Buffer.from(request)])
  const cut = [
    header.subarray(0, 5),
    header.subarray(5, 30),
    header.subarray(30),
    request.slice(0, 3),
    request.slice(3),
  ]
  for (const pieces of [[whole], [header, request], cut, [...whole].map((byte) => Buffer.of(byte))]) {
    const text = await answered(path, ...pieces)
    expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toEqual(told)
  }
})

it('S27: cuts who does not say who it is from', async () => {
  const path = await served()
  expect(await answered(path, request)).toBe('')
  expect(
    await answered(path, Buffer.concat([proxyHeader(peer).subarray(0, 12), Buffer.alloc(4_000, 255)])),
  ).toBe('')
})

it('waits for it only so long', async () => {
  expect(await answered(await served(50), proxyHeader(peer).subarray(0, 20))).toBe('')
})
