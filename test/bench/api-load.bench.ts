/**
 * Whether API clients cost the cameras anything: p99 from capture to publish, and frames analysed, with nobody asking and with clients
 * that ask for inference as fast as they are answered, in alternating rounds of one run.
 *
 *     npx tsx test/bench/api-load.bench.ts [clients] [cameras] [fps] [seconds]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { quantile, report, reportSlowest, stagesOf, type Stages } from './bench.js'

const [clients = 4, cameras = 3, fps = 5, seconds = 15] = process.argv.slice(2).map(Number)
const rounds = 3

const rtsp = await rtspCameras(cameras)
try {
  await using service = await TestService.start({
    pipeline: {
      modelServer: {},
      cameras: cameraSettings(rtsp, cameras, fps),
    },
  })
  for (let index = 1; index <= cameras; index += 1) await service.cameraIs(`cam-${index}`, 'live')
  await until('the model', async () => (await fetch(`${service.url}/v2/models/ppe_detect/ready`)).ok, 60_000)
  await pause(5_000)
  const stream = await service.stream()
  let sink: Stages[] = []
  stream.onMessage((message) => {
    if (message.type === 'detections') sink.push(stagesOf(message.timingsMs))
  })
  const measured = async (into: Stages[]) => {
    sink = into
    await pause(seconds * 1_000)
    sink = []
  }
  const alone: Stages[] = []
  const loaded: Stages[] = []
  let answered = 0
  for (let round = 0; round < rounds; round += 1) {
    await measured(alone)
    const entry = fileURLToPath(new URL('./api-clients.mjs', import.meta.url))
    const load = fork(entry, [`${service.httpPort}`, `${clients}`], { detached: true })
    await once(load, 'message')
    await measured(loaded)
    load.send('stop')
    const [{ requests }] = (await once(load, 'message')) as [{ requests: number }]
    answered += requests
    await once(load, 'exit')
    await pause(1_000)
  }
  stream.close()
  report('api-load', 'ratio', {
    p99: quantile(totals(loaded), 0.99) / quantile(totals(alone), 0.99),
    p50: quantile(totals(loaded), 0.5) / quantile(totals(alone), 0.5),
    aloneP99Ms: quantile(totals(alone), 0.99),
    loadedP99Ms: quantile(totals(loaded), 0.99),
    framesAlone: alone.length,
    framesLoaded: loaded.length,
    requestsPerSecond: answered / (rounds * seconds),
    clients,
  })
  reportSlowest('alone', alone)
  reportSlowest('loaded', loaded)
} finally {
  await rtsp.stop()
}

function totals(all: readonly Stages[]): number[] {
  return all.map(({ total }) => total)
}
