/**
 * What WebSocket subscribers cost the process that serves them, and how late its messages reach them: ten cameras that publish at places
 * of their own, to subscribers in a process of their own, of which every twentieth looks at the time. Three ways in turn, in rounds of one
 * run: every message at once (`at once`), gathered by how busy the loop is (`by load`, as the service does), and each gathered for 50 ms
 * (`always`, as crowds had it before).
 *
 *     npx tsx test/bench/stream.bench.ts [subscribers] [messages a second] [rounds] [seconds]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import { nowMs } from '../../src/lifecycle/clock.js'
import { defaultStreamLimits } from '../../src/delivery/websocket/stream-limits.js'
import { WebSocketHub } from '../../src/delivery/websocket/websocket-hub.js'
import { detectionsText } from '../support/detections.js'
import { silentLog } from '../support/silent-log.js'
import { quantile, report, undisturbed } from './bench.js'

const [subscribers = 1_000, messagesPerSecond = 50, rounds = 3, seconds = 8] = process.argv
  .slice(2)
  .map(Number)
const cameras = 10
/** Until the policy knows how busy the loop is. */
const settleMs = 4_000

/** Subscribes many sockets and tells the delays of the messages: the time of publishing travels in `ptsMs`. */
const subscriberProcess = `
const { WebSocket } = require('ws')
const [port, count] = process.argv.slice(1).map(Number)
const now = () => { const [s, ns] = process.hrtime(); return s * 1e3 + ns / 1e6 }
let delays = []
let received = 0
let subscribed = 0
for (let i = 0; i < count; i += 1) {
  const socket = new WebSocket('ws://127.0.0.1:' + port, { perMessageDeflate: false })
  socket.on('open', () => socket.send('{"type":"subscribe"}'))
  socket.on('message', (data) => {
    received += 1
    if (subscribed === count && i % 20 !== 0) return
    const text = data.toString('latin1')
    if (text.startsWith('{"type":"detections"')) delays.push(now() - Number(/"ptsMs":([0-9.]+)/.exec(text)[1]))
    else if (text.startsWith('{"type":"subscribed"') && (subscribed += 1) === count) process.send('ready')
  })
}
process.on('message', () => { process.send({ delays, received }); delays = []; received = 0 })
process.on('disconnect', () => process.exit(0))
`
type Received = Readonly<{ delays: number[]; received: number }>

const ways = {
  'at once': { idleLoad: 1, busyLoad: 2 },
  'by load': {},
  always: { idleLoad: -1, busyLoad: 0 },
} as const
type Way = keyof typeof ways

async function startHub(way: Way) {
  const limits = { ...defaultStreamLimits, ...ways[way] }
  const hub = new WebSocketHub({ service: 'bench', version: '0', epoch: 'b' }, silentLog(), limits)
  const http = createServer().listen(0, '127.0.0.1')
  await once(http, 'listening')
  const sockets = new WebSocketServer({ server: http, perMessageDeflate: false })
  sockets.on('connection', (socket, request) => hub.attach(socket, request.socket))
  const { port } = http.address() as AddressInfo
  const crowd = spawn(process.execPath, ['-e', subscriberProcess, String(port), String(subscribers)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  await once(crowd, 'message')
  return {
    hub,
    received: async () => {
      crowd.send('tell')
      return ((await once(crowd, 'message')) as [Received])[0]
    },
    stop: async () => {
      await hub.stop()
      crowd.kill('SIGKILL')
      await once(crowd, 'exit')
      sockets.close()
      http.close()
    },
  }
}

/** Where in a period each camera publishes: the same in every round. */
const places = Array.from({ length: cameras }, (_, camera) => ((camera * 0.618) % 1) + 0.01 * (camera % 3))
const periodMs = (1_000 * cameras) / messagesPerSecond

async function publishFor(hub: WebSocketHub, forMs: number): Promise<number> {
  let published = 0
  const startMs = nowMs()
  const feeds = places.map(async (place, camera) => {
    for (let round = 0; ; round += 1) {
      const dueMs = startMs + (round + (place % 1)) * periodMs
      if (dueMs > startMs + forMs) return
      await pause(Math.max(0, dueMs - nowMs()))
      published += 1
      hub.publish(detectionsText({ cameraId: `cam-${camera}`, seq: round, ptsMs: nowMs() }))
    }
  })
  await Promise.all(feeds)
  return published
}

type Round = Readonly<{ delays: number[]; cores: number; share: number }>

async function round(way: Way): Promise<Round> {
  const { hub, received, stop } = await startHub(way)
  try {
    return await undisturbed(async () => {
      await publishFor(hub, settleMs)
      await pause(200)
      await received()
      const [cpu, startMs] = [process.cpuUsage(), nowMs()]
      const published = await publishFor(hub, seconds * 1_000)
      const { user, system } = process.cpuUsage(cpu)
      const cores = (user + system) / 1e3 / (nowMs() - startMs)
      await pause(500)
      const got = await received()
      return { delays: got.delays, cores, share: got.received / (published * subscribers) }
    })
  } finally {
    await stop()
  }
}

const seen: Record<Way, Round[]> = { 'at once': [], 'by load': [], always: [] }
for (let index = 0; index < rounds; index += 1)
  for (const way of Object.keys(ways) as Way[]) seen[way].push(await round(way))
for (const [way, taken] of Object.entries(seen)) {
  const delays = taken.flatMap((each) => each.delays)
  report(`fan-out, ${way}`, 'ms, cores', {
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    cores: quantile(
      taken.map(({ cores }) => cores),
      0.5,
    ),
    received: Math.min(...taken.map(({ share }) => share)),
    subscribers,
    messagesPerSecond,
    n: delays.length,
  })
}
