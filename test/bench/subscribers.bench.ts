/**
 * What WebSocket subscribers cost the cameras: p99 from capture to publish of the whole service with nobody listening and with many
 * subscribers, in rounds of one run (none, many, many, none, ...). The subscribers are sockets in a process of their own that read and forget.
 *
 *     npx tsx test/bench/subscribers.bench.ts [subscribers] [cameras] [fps] [seconds] [rounds]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { quantile, report, reportSlowest, stagesOf, undisturbed, type Stages } from './bench.js'

const [subscribers = 1_000, cameras = 4, fps = 5, seconds = 40, rounds = 4] = process.argv
  .slice(2)
  .map(Number)

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
  let sink: Stages[] = []
  stream.onMessage((message) => {
    if (message.type === 'detections') sink.push(stagesOf(message.timingsMs))
  })
  const measured = async (into: Stages[]) => {
    const taken = await undisturbed(async () => {
      const round: Stages[] = []
      sink = round
      await pause(seconds * 1_000)
      sink = []
      return round
    })
    into.push(...taken)
  }
  const alone: Stages[] = []
  const crowded: Stages[] = []
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
  const n = crowded.length
  report('subscribers', 'ratio', {
    p99: quantile(totals(crowded), 0.99) / quantile(totals(alone), 0.99),
    p50: quantile(totals(crowded), 0.5) / quantile(totals(alone), 0.5),
    aloneP99Ms: quantile(totals(alone), 0.99),
    crowdedP99Ms: quantile(totals(crowded), 0.99),
    subscribers,
    n,
  })
  reportSlowest('alone', alone)
  reportSlowest('crowded', crowded)
} finally {
  await rtsp.stop()
}

function totals(all: readonly Stages[]): number[] {
  return all.map(({ total }) => total)
}
