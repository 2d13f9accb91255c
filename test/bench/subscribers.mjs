// Many WebSocket subscribers that read and forget, or ask for pictures and read nothing (`deaf`): bare sockets, so that they cost the machine
// as little as may be.
import { connect } from 'node:net'
import { standAside } from './stand-aside.mjs'

const [port, count] = process.argv.slice(2, 4).map(Number)
const deaf = process.argv[4] === 'deaf'
standAside()
const upgrade = `GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: gantry.v1\r\n\r\n`

/** A masked text frame, and a masked pong: the mask is zero, which the protocol allows. */
const text = Buffer.from(JSON.stringify({ type: 'subscribe', frames: deaf }))
const subscribe = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text])
const pong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0])

let open = 0
for (let index = 0; index < count; index += 1) {
  const socket = connect(port, '127.0.0.1', () => socket.write(upgrade))
  let upgraded = false
  socket.on('data', () => {
    if (upgraded) return
    upgraded = true
    socket.write(subscribe)
    if (deaf) socket.pause()
    setInterval(() => socket.write(pong), 10_000)
    open += 1
    if (open === count) process.send('all')
  })
  socket.on('error', (error) => {
    throw error
  })
}
