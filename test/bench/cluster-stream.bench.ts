/**
 * One page of 200 cameras that four nodes share, beside one node that has all of them: what the stream processes take of the cores, and how late
 * results reach the page. Real stream processes, which read each other; results are made here, at 1,000 a second in all. Both in turn, in
 * rounds of one run.
 *
 *     npx tsx test/bench/cluster-stream.bench.ts [cameras] [nodes] [results a second] [rounds] [seconds]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { handOver } from '../../src/api/hand-over.js'
import type { PipelineConfig } from '../../src/config/pipeline.js'
import { nowMs } from '../../src/lifecycle/clock.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { StreamProcess } from '../../src/processes/stream/stream-process.js'
import { cpuSeconds } from '../support/cpu.js'
import { detectionsText } from '../support/detections.js'
import { silentLog } from '../support/silent-log.js'
import { quantile, report, undisturbed } from './bench.js'

const [cameras = 200, mostNodes = 4, perSecond = 1_000, rounds = 3, seconds = 20] = process.argv
  .slice(2)
  .map(Number)
const everyMs = 10
const settleMs = 5_000

/** One page: the time of publishing travels in `ptsMs`. */
const pageProcess = `
const { WebSocket } = require('ws')
const now = () => { const [s, ns] = process.hrtime(); return s * 1e3 + ns / 1e6 }
let delays = []
const seen = new Set()
const socket = new WebSocket('ws://127.0.0.1:' + process.argv[1], ['gantry.v1'], { perMessageDeflate: false })
socket.on('open', () => socket.send('{"type":"subscribe"}'))
socket.on('message', (data) => {
  const text = data.toString('latin1')
  if (!text.startsWith('{"type":"detections"')) return
  delays.push(now() - Number(/"ptsMs":([0-9.]+)/.exec(text)[1]))
  seen.add(/"cameraId":"([^"]+)"/.exec(text)[1])
})
process.on('message', () => { process.send({ delays, cameras: seen.size }); delays = [] })
process.on('disconnect', () => process.exit(0))
`
type Seen = Readonly<{ delays: number[]; cameras: number }>

async function startNode(name: string, isShared: boolean) {
  const stream = new StreamProcess(
    { server: { maxStreamClients: 10 }, log: { level: 'error' } } as unknown as PipelineConfig,
    { service: 'bench', version: '0.0.0', epoch: name },
    undefined,
    createServiceMetrics(),
    silentLog(),
    isShared ? { token: undefined, tls: undefined, past: undefined } : undefined,
  )
  const http = createServer()
  http.on('upgrade', ({ method = '', url = '', headers }, socket, head: Buffer) => {
    const adopt = () => stream.adopt({ method, url, headers }, socket as Socket, head)
    void Promise.resolve(handOver(socket as Socket, adopt)).then((taken) => taken || socket.destroy())
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  const stop = async () => {
    await stream.stop()
    http.close()
    http.closeAllConnections()
  }
  return { name, stream, port, stop }
}

type Round = Readonly<{ delays: number[]; pageCores: number; otherCores: number; share: number }>

async function round(count: number): Promise<Round> {
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, index) => startNode(`n${index}`, count > 1)),
  )
  for (const { stream, name } of nodes) {
    const others = nodes.filter((other) => other.name !== name)
    stream.tellNodes(others.map((other) => ({ node: other.name, url: `http://127.0.0.1:${other.port}` })))
  }
  const [first] = nodes
  const page = spawn(process.execPath, ['-e', pageProcess, String(first?.port)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  let seq = 0
  const feed = setInterval(() => {
    for (let index = 0; index < (perSecond * everyMs) / 1_000; index += 1) {
      const camera = (seq += 1) % cameras
      const node = nodes[camera % count]
      const text = detectionsText({ cameraId: `cam-${camera}`, seq, ptsMs: nowMs() })
      node?.stream.publish({ ...text, position: seq })
    }
  }, everyMs)
  const told = async () => {
    page.send('tell')
    return ((await once(page, 'message')) as [Seen])[0]
  }
  const cores = () => nodes.map(({ stream }) => cpuSeconds(stream.health.pid ?? 0))
  try {
    await pause(settleMs)
    return await undisturbed(async () => {
      await told()
      const [before, from, startMs] = [cores(), seq, nowMs()]
      await pause(seconds * 1_000)
      const [after, forS] = [cores(), (nowMs() - startMs) / 1_000]
      const published = seq - from
      const { delays, cameras: seen } = await told()
      if (seen < cameras) throw new Error(`the page has ${seen} of ${cameras} cameras`)
      const [pageCores = 0, ...rest] = after.map((used, index) => (used - (before[index] ?? 0)) / forS)
      const otherCores = rest.length === 0 ? 0 : rest.reduce((sum, used) => sum + used, 0) / rest.length
      return { delays, pageCores, otherCores, share: delays.length / published }
    })
  } finally {
    clearInterval(feed)
    page.kill('SIGKILL')
    await once(page, 'exit')
    await Promise.all(nodes.map(({ stop }) => stop()))
  }
}

const seen = new Map<number, Round[]>([1, mostNodes].map((count) => [count, []]))
for (let index = 0; index < rounds; index += 1)
  for (const [count, taken] of seen) taken.push(await round(count))
for (const [count, taken] of seen) {
  const delays = taken.flatMap((each) => each.delays)
  const middle = (figure: (each: Round) => number) => quantile(taken.map(figure), 0.5)
  report(`one page, ${cameras} cameras, ${count === 1 ? 'one node' : `${count} nodes`}`, 'ms, cores', {
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    pageNodeCores: middle((each) => each.pageCores),
    otherNodeCores: middle((each) => each.otherCores),
    share: middle((each) => each.share),
    n: delays.length,
  })
}
