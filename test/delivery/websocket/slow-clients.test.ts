import { afterEach, expect, it } from 'vitest'
import { defaultStreamLimits } from '../../../src/delivery/websocket/stream-limits.js'
import { detectionsText } from '../../support/detections.js'
import { until } from '../../support/until.js'
import { deafClient, startHub, TestClient, type Fixture } from './stream-fixture.js'

let fixture: Fixture
afterEach(() => fixture.stop())

/** About 20 kB of JSON, each different. */
const message = (seq: number) =>
  detectionsText({
    seq,
    detections: Array.from({ length: 180 }, (_, i) => ({
      label: `label-${seq}-${i}`,
      score: 0.5,
      boxPx: { x1: i, y1: i, x2: i + 10.25, y2: i + 20.5 },
    })),
  })

it('R17: 50 of 200 clients that stop reading cost the other 150 nothing and memory little, and are closed', async () => {
  fixture = await startHub({ sweepMs: 100, slowCloseMs: 1_500, closeGraceMs: 500 })
  const { hub, port } = fixture
  const deaf = await Promise.all(Array.from({ length: 50 }, () => deafClient(port)))
  let received = 0
  let last = 0
  const clients = await Promise.all(Array.from({ length: 150 }, () => TestClient.connect(port)))
  for (const client of clients) {
    // Counting is enough here, and parsing 150 times would be the load.
    client.socket.removeAllListeners('message')
    client.socket.on('message', (data: Buffer) => {
      if (data.subarray(0, 20).includes('detections')) received += 1
      if (data.subarray(0, 20).includes('gap')) last = Number.NaN
    })
    client.send({ type: 'subscribe' })
  }
  await until('all subscribed', async () => {
    hub.publish(detectionsText({ seq: (last += 1) }))
    const before = received
    // Clients are served in chunks, one in each turn of the loop.
    for (let turn = 0; turn < 20 && received - before < 150; turn += 1) await new Promise(setImmediate)
    return received - before >= 150
  })
  const baseBytes = process.memoryUsage().rss
  const startReceived = received
  let published = 0
  while (hub.clients > 150) {
    const before = received
    hub.publish(message((published += 1)))
    await until('the fast clients have it', () => received - before >= 150, 10_000, 1)
    if (published > 2_000) throw new Error('deaf clients are never given up')
  }
  expect(received - startReceived).toBeGreaterThanOrEqual(published * 150)
  expect(last).not.toBeNaN()
  expect(fixture.counted('dropped')).toBeGreaterThan(0)
  expect(clients.every(({ closed }) => closed === undefined)).toBe(true)
  // The hub may hold 1 MiB back for each client; the clients themselves live in this process too.
  expect(process.memoryUsage().rss - baseBytes).toBeLessThan(200 * 1024 ** 2)
  for (const socket of deaf) socket.destroy()
}, 60_000)

it('R17: the limits of the service ping within 15 s, give up within 30, and keep 1 MiB for a client', () => {
  const { pingAfterMs, deadAfterMs, sweepMs, slowCloseMs, maxBufferedBytes } = defaultStreamLimits
  expect(pingAfterMs + sweepMs).toBeLessThanOrEqual(15_000)
  expect(deadAfterMs + sweepMs).toBeLessThanOrEqual(30_000)
  expect(slowCloseMs).toBeLessThanOrEqual(30_000)
  expect(maxBufferedBytes).toBeLessThanOrEqual(1024 ** 2)
})
