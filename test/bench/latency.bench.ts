/**
 * How late a result is at half load: from the frame's arrival, its last byte leaving ffmpeg, to its WebSocket message in a client, less
 * the time the model itself ran. Half load: cameras and rates are chosen so that the machine is about half busy; the figure says how
 * busy it was. It is measured after 40 s, in which V8 compiles what runs at 20 frames a second. A second line says where the slowest
 * hundredth lost its time: waiting for an instance, in the run, behind it, on the way to the control process and from there to the client.
 *
 *     npx tsx test/bench/latency.bench.ts [cameras] [fps] [seconds]
 */
import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { treeCpuSeconds } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { quantile, report } from './bench.js'

type Late = Readonly<{ queue: number; infer: number; postprocess: number; out: number; delivery: number }>

const [cameras = 6, fps = 5, seconds = 30] = process.argv.slice(2).map(Number)

const rtsp = await rtspCameras(cameras)
try {
  await using service = await TestService.start({
    pipeline: {
      cameras: cameraSettings(rtsp, cameras, fps),
    },
  })
  for (let index = 1; index <= cameras; index += 1) await service.cameraIs(`cam-${index}`, 'live')
  await pause(40_000)
  const late: Late[] = []
  const stream = await service.stream()
  stream.onMessage((message) => {
    if (message.type !== 'detections') return
    const { queue, infer, postprocess, captureToPublish } = message.timingsMs
    const out = captureToPublish - queue - infer - postprocess
    const delivery = Date.now() - Date.parse(message.capturedAt) - captureToPublish
    late.push({ queue, infer, postprocess, out, delivery })
  })
  const cpu0 = treeCpuSeconds(service.pid)
  await pause(seconds * 1_000)
  const busy = (treeCpuSeconds(service.pid) - cpu0) / seconds / availableParallelism()
  stream.close()
  const rest = late.map(restOf)
  const infer = late.map((each) => each.infer)
  report('decoder-to-websocket', 'ms', {
    restP50: quantile(rest, 0.5),
    restP99: quantile(rest, 0.99),
    totalP99: quantile(
      late.map((each) => restOf(each) + each.infer),
      0.99,
    ),
    inferP50: quantile(infer, 0.5),
    inferP99: quantile(infer, 0.99),
    busyShare: busy,
    cameras,
    fps,
    n: rest.length,
  })
  report('decoder-to-websocket-slowest-hundredth', 'ms', slowest(late))
} finally {
  await rtsp.stop()
}

function restOf({ queue, postprocess, out, delivery }: Late): number {
  return queue + postprocess + out + delivery
}

/** Mean of each stage over the frames that were latest beyond their run. */
function slowest(late: readonly Late[]): Readonly<Record<keyof Late, number>> {
  const worst = [...late].sort((a, b) => restOf(b) - restOf(a)).slice(0, Math.ceil(late.length / 100))
  const mean = (stage: keyof Late) => worst.reduce((sum, each) => sum + each[stage], 0) / worst.length
  return {
    queue: mean('queue'),
    infer: mean('infer'),
    postprocess: mean('postprocess'),
    out: mean('out'),
    delivery: mean('delivery'),
  }
}
