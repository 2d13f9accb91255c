/**
 * Whether the room that the service says it has is the room that there is: what `/api/v1/headroom` says with a few cameras, against the
 * most cameras that are held when more are added one by one.
 *
 *     npx tsx test/bench/headroom.bench.ts [cameras at first] [fps] [latency objective, ms] [seconds of each look]
 *
 * Cameras are held while 98 of 100 of their frames are analysed and the p99 of each keeps the objective.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { HeadroomView } from '../../src/api/gantry.js'
import type { CameraView } from '../../src/cameras/camera-view.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { report } from './bench.js'

const [first = 3, fps = 5, objectiveMs = 300, seconds = 25] = process.argv.slice(2).map(Number)
const most = 64
/** The window of what is measured is half a minute; code is compiled before. */
const settleMs = 45_000

const rtsp = await rtspCameras(most)
const settings = cameraSettings(rtsp, most, fps)

async function held(service: TestService): Promise<boolean> {
  const frames = async () => {
    const { items } = await service.json<{ items: readonly CameraView[] }>('/api/v1/cameras')
    const sum = (of: (camera: CameraView) => number) => items.reduce((total, camera) => total + of(camera), 0)
    return {
      received: sum(({ stats }) => stats.frames.received),
      inferred: sum(({ stats }) => stats.frames.inferred),
      p99Ms: Math.max(...items.map(({ stats }) => stats.latencyMs?.p99 ?? Infinity)),
    }
  }
  const before = await frames()
  await pause(seconds * 1_000)
  const after = await frames()
  const share = (after.inferred - before.inferred) / (after.received - before.received)
  process.stderr.write(`  ${share.toFixed(3)} of the frames, p99 ${after.p99Ms.toFixed(0)} ms\n`)
  return share >= 0.98 && after.p99Ms <= objectiveMs
}

try {
  await using service = await TestService.start({
    pipeline: { cameras: settings.slice(0, first), latencyObjectiveMs: objectiveMs },
  })
  const predictions: string[] = []
  let cameras = first
  for (; cameras < most; cameras += 1) {
    await service.cameraIs(`cam-${cameras}`, 'live', 60_000)
    if (cameras === first) await pause(settleMs)
    // That what is told is of these cameras, and the quantiles too.
    const view = await until(
      'headroom of these cameras',
      async () => {
        const told = await service.json<HeadroomView>('/api/v1/headroom')
        return told.now?.cameras === cameras && told.now.comingCameras === 0 ? told : undefined
      },
      60_000,
      500,
    )
    await pause(seconds * 1_000)
    const told = await service.json<HeadroomView>('/api/v1/headroom')
    predictions.push(`${cameras}+${told.cameras ?? view.cameras}`)
    process.stderr.write(
      `${cameras} cameras: room for ${told.cameras} (${told.limitedBy}), ${told.now?.cores.busy.toFixed(2)} cores\n`,
    )
    if (!(await held(service))) break
    await service.send('POST', '/api/v1/cameras', settings[cameras])
  }
  report('headroom', 'cameras', { held: cameras - 1, told: predictions.join(' '), fps, objectiveMs })
} finally {
  await rtsp.stop()
}
