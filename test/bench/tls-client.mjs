// One client for tls-overhead.bench.ts: bytes on a socket, one request after the other. Prints p50 and p99 in us, and n, as JSON.
//
//     node tls-client.mjs PORT CA|plain BODY_BYTES kept|new SECONDS
import { connect } from 'node:net'
import { readFileSync } from 'node:fs'
import { connect as connectTls } from 'node:tls'

const [port, ca, bodyBytes, mode, seconds] = process.argv.slice(2)
const host = '127.0.0.1'
const trust = ca === 'plain' ? undefined : { ca: readFileSync(ca), ALPNProtocols: ['http/1.1'] }
const head = `POST /v2/models/tiny/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bodyBytes}\r\n\r\n`
const request = Buffer.concat([Buffer.from(head), Buffer.alloc(Number(bodyBytes), 114)])

async function opened() {
  const socket = trust ? connectTls({ host, port: Number(port), ...trust }) : connect(Number(port), host)
  socket.setNoDelay(true)
  await new Promise((resolve, reject) =>
    socket.once(trust ? 'secureConnect' : 'connect', resolve).once('error', reject),
  )
  return socket
}

function asked(socket) {
  return new Promise((resolve, reject) => {
    let text = ''
    let left
    const read = (data) => {
      if (left === undefined) {
        text += data.toString('latin1')
        const end = text.indexOf('\r\n\r\n')
        if (end < 0) return
        left = Number(/content-length: (\d+)/i.exec(text)[1]) - (text.length - end - 4)
      } else left -= data.length
      if (left > 0) return
      socket.off('data', read).off('error', reject)
      resolve()
    }
    socket.on('data', read).on('error', reject)
    socket.write(request)
  })
}

const timesUs = []
async function repeat(forSeconds) {
  const endMs = performance.now() + forSeconds * 1_000
  let socket = mode === 'kept' ? await opened() : undefined
  for (;;) {
    const sentMs = performance.now()
    if (sentMs > endMs) break
    if (mode === 'new') socket = await opened()
    await asked(socket)
    if (mode === 'new') socket.destroy()
    timesUs.push((performance.now() - sentMs) * 1_000)
  }
  socket?.destroy()
}
await repeat(Number(seconds) / 3)
timesUs.length = 0
await repeat(Number(seconds))
timesUs.sort((a, b) => a - b)
const quantile = (q) => timesUs[Math.floor(q * timesUs.length)]
process.stdout.write(JSON.stringify({ p50: quantile(0.5), p99: quantile(0.99), n: timesUs.length }), () =>
  process.exit(0),
)
