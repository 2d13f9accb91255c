import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { handOver } from '../../../src/api/hand-over.js'
import type { PipelineConfig } from '../../../src/config/pipeline.js'
import type { DetectionsText } from '../../../src/messages/detections-json.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { StreamProcess } from '../../../src/processes/stream/stream-process.js'
import { TestClient } from '../../delivery/websocket/stream-fixture.js'
import { detectionsText } from '../../support/detections.js'
import { silentLog } from '../../support/silent-log.js'
import { until } from '../../support/until.js'

/** Of the stream of a test. */
let position = 0
/** Behind the one before. */
const placed = (text: DetectionsText) => ({ ...text, position: (position += 1) })

/** A server that gives a real process its clients, of which there was none yet. */
async function idle() {
  position = 0
  const config = { server: { maxStreamClients: 10 }, log: { level: 'silent' } }
  const settings = { service: 'test', version: '0.0.0', epoch: 'e1' }
  const stream = new StreamProcess(
    config as unknown as PipelineConfig,
    settings,
    undefined,
    createServiceMetrics(),
    silentLog(),
  )
  onTestFinished(() => stream.stop())
  const http = createServer()
  http.on('upgrade', ({ method = '', url = '', headers }, socket, head: Buffer) => {
    const adopt = () => stream.adopt({ method, url, headers }, socket as Socket, head)
    void Promise.resolve(handOver(socket as Socket, adopt)).then((taken) => taken || socket.destroy())
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  onTestFinished(() => void http.close())
  return { stream, port: (http.address() as AddressInfo).port }
}

/** The same once a client has started it, who is gone. */
async function started() {
  const { stream, port } = await idle()
  const client = await TestClient.connect(port)
  client.socket.terminate()
  await until('it is gone', () => stream.health.clients === 0)
  return { stream, port, pid: stream.health.pid ?? 0 }
}

/** Some 4 kB of JSON. */
const detections = Array.from({ length: 35 }, (_, i) => ({
  label: `label-${i}`,
  score: 0.5,
  boxPx: { x1: i, y1: i, x2: i + 10.25, y2: i + 20.5 },
}))

it('is started by its first clients, all of which it serves; results before them start nothing', async () => {
  const { stream, port } = await idle()
  for (let seq = 1; seq <= 100; seq += 1) stream.publish(placed(detectionsText({ seq })))
  expect(stream.health).toEqual({ state: 'idle', pid: null, restarts: 0, reason: '', clients: 0 })
  const connecting = [1, 2, 3].map(() => TestClient.subscribed(port))
  await until('it starts', () => stream.health.pid !== null)
  const clients = await Promise.all(connecting)
  expect(stream.health).toMatchObject({ state: 'ready', restarts: 0, clients: 3 })
  stream.publish(placed(detectionsText({ seq: 101 })))
  for (const client of clients) {
    expect(await client.next('detections')).toMatchObject({ seq: 101 })
    expect(client.of('detections')).toHaveLength(1)
  }
})

it('takes nobody once it is stopped, whether it was started or not', async () => {
  const { stream, port } = await idle()
  const early = once(new WebSocket(`ws://127.0.0.1:${port}`), 'error')
  await until('it starts', () => stream.health.pid !== null)
  await stream.stop()
  await early
  expect(stream.health).toMatchObject({ state: 'stopped', reason: 'stopped' })
  const never = await idle()
  await never.stream.stop()
  expect(never.stream.health).toMatchObject({ state: 'stopped', pid: null })
})

const positionOf = (cursor: string) => Number(cursor.split('-').at(-1))

it('a client gets nothing that was published before it came, and all that was published after', async () => {
  const { stream, port } = await started()
  for (let round = 0; round < 20; round += 1) {
    for (let seq = 1; seq <= 20; seq += 1) stream.publish(placed(detectionsText({ seq, detections })))
    const client = await TestClient.connect(port)
    expect(positionOf(client.of('hello')[0]?.cursor ?? '')).toBe((round + 1) * 20)
    client.socket.terminate()
    await until('it is gone', () => stream.health.clients === 0)
  }
})

it('R38: results for a process that does not read wait within a bound, and its clients are told how many went', async () => {
  const { stream, port, pid } = await started()
  const client = await TestClient.subscribed(port)
  const bytes = () => process.memoryUsage().arrayBuffers
  process.kill(pid, 'SIGSTOP')
  const before = bytes()
  const most = 30_000
  let grownBytes = 0
  for (let seq = 1; seq <= most; seq += 1) {
    stream.publish(placed(detectionsText({ seq, detections })))
    if (seq % 1_000 !== 0) continue
    await new Promise(setImmediate)
    grownBytes = Math.max(grownBytes, bytes() - before)
  }
  // 120 MB were published, and what V8 has not collected yet counts here, too.
  expect(grownBytes).toBeLessThan(40 * 1024 ** 2)
  process.kill(pid, 'SIGCONT')
  const told = () => client.of('gap').reduce((sum, { dropped }) => sum + dropped, 0)
  const got = () => client.of('detections').length
  await until('it reads on', () => got() > 0)
  let published = most
  await until('all is told, with a result', () => {
    if (got() + told() === published) return true
    stream.publish(placed(detectionsText({ seq: published })))
    published += 1
    return false
  })
  expect(told()).toBeGreaterThan(most / 2)
  expect(positionOf(client.of('detections').at(-1)?.cursor ?? '')).toBe(published)
  expect(stream.health.restarts).toBe(0)
})

it('R20: clients get what was published before the stop, and are closed after it', async () => {
  const { stream, port } = await started()
  const client = await TestClient.subscribed(port)
  for (let seq = 1; seq <= 50; seq += 1) stream.publish(placed(detectionsText({ seq, detections })))
  await stream.stop()
  expect(await client.whenClosed()).toMatchObject({ code: 1001 })
  expect(client.of('detections').map(({ seq }) => seq)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
})
