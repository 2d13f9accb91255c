/**
 * What WebSocket subscribers cost the process that publishes: 20 messages/s to 0 and to 1,000 subscribers in alternating rounds of one
 * run. The subscribers live in a thread of their own. Prints one JSON line per figure.
 *
 *   npx tsx test/bench/stream.bench.ts [SUBSCRIBERS]
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { WebSocketServer } from 'ws'
import { nowMs } from '../../src/lifecycle/clock.js'
import { WebSocketHub } from '../../src/delivery/websocket/websocket-hub.js'
import { detectionsMessage } from '../support/detections.js'
import { silentLog } from '../support/silent-log.js'
import { quantile, report } from './bench.js'

const subscribers = Number(process.argv[2] ?? 1_000)
const messagesPerSecond = 20
const roundMs = 5_000
const rounds = 3

/** Subscribes many sockets and posts the delay of each message it receives: publishing time travels in `ptsMs`. */
const subscriberThread = `
const { parentPort, workerData } = require('node:worker_threads')
const { WebSocket } = require('ws')
const now = () => { const [s, ns] = process.hrtime(); return s * 1e3 + ns / 1e6 }
let delays = []
let subscribed = 0
for (let i = 0; i < workerData.count; i += 1) {
  const socket = new WebSocket('ws://127.0.0.1:' + workerData.port, { perMessageDeflate: false })
  socket.on('open', () => socket.send('{"type":"subscribe"}'))
  socket.on('message', (data) => {
    const text = data.toString('latin1')
    if (text.startsWith('{"type":"detections"')) delays.push(now() - Number(/"ptsMs":([0-9.]+)/.exec(text)[1]))
    else if (text.startsWith('{"type":"subscribed"') && (subscribed += 1) === workerData.count) parentPort.postMessage('ready')
  })
}
parentPort.on('message', () => { parentPort.postMessage(delays); delays = [] })
`

/** Work of the camera path that must not wait: a timer due every 5 ms, and how late it comes. */
async function latenessMs(forMs: number): Promise<number[]> {
  const late: number[] = []
  let dueMs = nowMs() + 5
  const endMs = nowMs() + forMs
  while (nowMs() < endMs) {
    await pause(Math.max(0, dueMs - nowMs()))
    late.push(nowMs() - dueMs)
    dueMs = nowMs() + 5
  }
  return late
}

const hub = new WebSocketHub({ service: 'bench', version: '0', epoch: 'b' }, silentLog())
const http = createServer().listen(0, '127.0.0.1')
await once(http, 'listening')
const sockets = new WebSocketServer({ server: http, perMessageDeflate: false })
sockets.on('connection', (socket, request) => hub.attach(socket, request.socket))

let seq = 0
async function round(): Promise<{ late: number[]; publish: number[]; cpuMsPerSecond: number }> {
  const publish: number[] = []
  const cpu = process.cpuUsage()
  const feed = setInterval(() => {
    const startMs = nowMs()
    hub.publish(detectionsMessage({ seq: (seq += 1), ptsMs: startMs }))
    publish.push(nowMs() - startMs)
  }, 1_000 / messagesPerSecond)
  const late = await latenessMs(roundMs)
  clearInterval(feed)
  const { user, system } = process.cpuUsage(cpu)
  return { late, publish, cpuMsPerSecond: (user + system) / roundMs }
}

const totals = {
  without: [] as number[],
  with: [] as number[],
  publish: [] as number[],
  delays: [] as number[],
}
const cpuMsPerSecond: number[] = []
for (let i = 0; i < rounds; i += 1) {
  totals.without.push(...(await round()).late)
  const { port } = http.address() as AddressInfo
  const worker = new Worker(subscriberThread, { eval: true, workerData: { port, count: subscribers } })
  await once(worker, 'message')
  const figures = await round()
  totals.with.push(...figures.late)
  totals.publish.push(...figures.publish)
  cpuMsPerSecond.push(figures.cpuMsPerSecond)
  worker.postMessage('report')
  const [delays] = (await once(worker, 'message')) as [number[]]
  for (const delay of delays) totals.delays.push(delay)
  await worker.terminate()
  while (hub.clients > 0) await pause(10)
}
await hub.stop()
sockets.close()
http.close()

const named = (values: number[]) => ({
  p50: quantile(values, 0.5),
  p99: quantile(values, 0.99),
  n: values.length,
})
report('stream-lateness-no-subscribers', 'ms', named(totals.without))
report(`stream-lateness-${subscribers}-subscribers`, 'ms', named(totals.with))
report(`stream-publish-call-${subscribers}-subscribers`, 'ms', named(totals.publish))
report(`stream-delay-${subscribers}-subscribers`, 'ms', named(totals.delays))
report(`stream-expected-messages`, 'count', {
  received: totals.delays.length,
  published: totals.publish.length * subscribers,
})
report(`stream-process-cpu-${subscribers}-subscribers-and-their-thread`, 'CPU-ms/s', {
  p50: quantile(cpuMsPerSecond, 0.5),
  n: cpuMsPerSecond.length,
})
