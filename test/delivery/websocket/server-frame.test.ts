import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer, type RawData } from 'ws'
import { serverFrame } from '../../../src/delivery/websocket/server-frame.js'

describe('serverFrame', () => {
  let server: WebSocketServer
  let frames: Buffer[] = []

  beforeEach(async () => {
    server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
    server.on('connection', (_, request) => frames.forEach((frame) => request.socket.write(frame)))
    await once(server, 'listening')
  })

  afterEach(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })

  /** What a WebSocket client makes of `frames`. */
  async function received(): Promise<[RawData, boolean][]> {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const messages: [RawData, boolean][] = []
    return new Promise((resolve, reject) => {
      client.on('error', reject)
      client.on('message', (data, isBinary) => {
        messages.push([data, isBinary])
        if (messages.length === frames.length) resolve(messages)
      })
    })
  }

  it('is read by a client as one message, whichever of the three forms its length takes', async () => {
    const lengths = [0, 1, 125, 126, 65_535, 65_536, 200_000]
    const texts = lengths.map((bytes) => 'ä'.repeat(bytes / 2) + 'x'.repeat(bytes % 2))
    frames = texts.map((text) => serverFrame('text', Buffer.from(text)))
    expect((await received()).map(([data, isBinary]) => [(data as Buffer).toString(), isBinary])).toEqual(
      texts.map((text) => [text, false]),
    )
  })

  it('joins its parts', async () => {
    frames = [serverFrame('binary', Uint8Array.of(1, 2), Uint8Array.of(), Uint8Array.of(3))]
    expect(await received()).toEqual([[Buffer.of(1, 2, 3), true]])
  })
})
