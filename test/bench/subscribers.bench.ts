/**
 * What WebSocket subscribers cost the cameras: p99 from capture to publish of the whole service with nobody listening and with many
 * subscribers, in rounds of one run (none, many, many, none, ...). The subscribers are sockets in a process of their own that read and forget.
 * What is theirs: from publishing to one of them, which waits with the others, and what the stream process takes of a core.
 *
 *     npx tsx test/bench/subscribers.bench.ts [subscribers] [cameras] [fps] [seconds] [rounds]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { cpuSeconds } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { quantile, report, reportSlowest, stagesOf, undisturbed, type Stages } from './bench.js'

const [subscribers = 1_000, cameras = 4, fps = 5, seconds = 40, rounds = 4] = process.argv
  .slice(2)
  .map(Number)

type Sample = Stages & Readonly<{ deliveryMs: number }>
type Side = Readonly<{ samples: Sample[]; cores: number[] }>

const rtsp = await rtspCameras(cameras)
try {
  await using service = await TestService.start({
    pipeline: {
      cameras: cameraSettings(rtsp, cameras, fps),
    },
  })
  for (let index = 1; index <= cameras; index += 1) await service.cameraIs(`cam-${index}`, 'live')
  await pause(40_000)
  const stream = await service.stream()
  let sink: Sample[] = []
  stream.onMessage((message) => {
    if (message.type !== 'detections') return
    const stages = stagesOf(message.timingsMs)
    sink.push({ ...stages, deliveryMs: Date.now() - Date.parse(message.capturedAt) - stages.total })
  })
  const streamCpu = async () => cpuSeconds((await service.ready()).stream.pid ?? 0)
  const measured = async (into: Side) => {
    const { round, cores } = await undisturbed(async () => {
      const round: Sample[] = []
      const before = await streamCpu()
      sink = round
      await pause(seconds * 1_000)
      sink = []
      return { round, cores: ((await streamCpu()) - before) / seconds }
    })
    into.samples.push(...round)
    into.cores.push(cores)
  }
  const alone: Side = { samples: [], cores: [] }
  const crowded: Side = { samples: [], cores: [] }
  const withSubscribers = async () => {
    const entry = fileURLToPath(new URL('./subscribers.mjs', import.meta.url))
    const crowd = fork(entry, [`${service.httpPort}`, `${subscribers}`], { detached: true })
    await once(crowd, 'message')
    await pause(2_000) // until all are subscribed, and what that took is over
    await measured(crowded)
    crowd.kill('SIGKILL')
    await once(crowd, 'exit')
    await pause(1_000)
  }
  for (let round = 0; round < rounds; round += 1) {
    if (round % 2 === 1) await withSubscribers()
    await measured(alone)
    if (round % 2 === 0) await withSubscribers()
  }
  stream.close()
  report('subscribers', 'ratio', {
    p99: quantile(totals(crowded), 0.99) / quantile(totals(alone), 0.99),
    p50: quantile(totals(crowded), 0.5) / quantile(totals(alone), 0.5),
    aloneP99Ms: quantile(totals(alone), 0.99),
    crowdedP99Ms: quantile(totals(crowded), 0.99),
    subscribers,
    n: crowded.samples.length,
  })
  for (const [name, { samples, cores }] of Object.entries({ alone, crowded })) {
    const delivery = samples.map(({ deliveryMs }) => deliveryMs)
    report(`${name}, publishing to a subscriber`, 'ms, cores', {
      p50: quantile(delivery, 0.5),
      p99: quantile(delivery, 0.99),
      cores: quantile(cores, 0.5),
      messagesPerSecond: cameras * fps,
    })
    reportSlowest(name, samples)
  }
} finally {
  await rtsp.stop()
}

function totals({ samples }: Side): number[] {
  return samples.map(({ total }) => total)
}
