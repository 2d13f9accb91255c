/**
 * What viewers that stop reading cost those that read: p99 from capture to a reader, among 150 readers, with and without 50 viewers who
 * ask for pictures and read nothing, once all that may wait for them does. Rounds of one run (without, with, with, without, ...).
 *
 *     npx tsx test/bench/deaf-viewers.bench.ts [cameras] [fps] [seconds] [rounds]
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { quantile, report } from './bench.js'

const readers = 150
const deafViewers = 50
/** A slow viewer is closed after 30 s. */
const longestRoundS = 20
const [cameras = 4, fps = 5, seconds = 15, rounds = 4] = process.argv.slice(2).map(Number)
if (!(seconds <= longestRoundS)) throw new Error(`rounds of ${seconds} s: ${longestRoundS} at most`)

const rtsp = await rtspCameras(cameras)
const crowds: ChildProcess[] = []
try {
  await using service = await TestService.start({
    pipeline: {
      cameras: cameraSettings(rtsp, cameras, fps),
    },
  })
  for (let index = 1; index <= cameras; index += 1) await service.cameraIs(`cam-${index}`, 'live')
  const crowd = async (count: number, ...manner: readonly string[]) => {
    const entry = fileURLToPath(new URL('./subscribers.mjs', import.meta.url))
    const child = fork(entry, [`${service.httpPort}`, `${count}`, ...manner], { detached: true })
    crowds.push(child)
    await once(child, 'message')
    return child
  }
  const skipped = () => service.metric(/gantry_stream_messages_total\{result="picture_skipped"\}/)

  await crowd(readers)
  await pause(40_000)
  // Sees pictures, so that they are made whether or not somebody deaf asks for them.
  const stream = await service.stream({ frames: true })
  let sink: number[] = []
  stream.onMessage((message) => {
    if (message.type === 'detections') sink.push(Date.now() - Date.parse(message.capturedAt))
  })
  const measured = async (into: number[]) => {
    sink = into
    await pause(seconds * 1_000)
    sink = []
  }
  const alone: number[] = []
  const beside: number[] = []
  const besideDeaf = async () => {
    const before = await skipped()
    const deaf = await crowd(deafViewers, 'deaf')
    await until('full buffers', async () => (await skipped()) - before >= deafViewers * 5, 60_000)
    await measured(beside)
    deaf.kill('SIGKILL')
    await once(deaf, 'exit')
    await pause(1_000)
  }
  for (let round = 0; round < rounds; round += 1) {
    if (round % 2 === 1) await besideDeaf()
    await measured(alone)
    if (round % 2 === 0) await besideDeaf()
  }
  stream.close()
  report('deaf-viewers', 'ratio', {
    p99: quantile(beside, 0.99) / quantile(alone, 0.99),
    p50: quantile(beside, 0.5) / quantile(alone, 0.5),
    aloneP99Ms: quantile(alone, 0.99),
    besideP99Ms: quantile(beside, 0.99),
    readers,
    deafViewers,
    n: beside.length,
  })
} finally {
  for (const child of crowds) child.kill('SIGKILL')
  await rtsp.stop()
}
