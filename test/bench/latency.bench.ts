/**
 * How late a result is at half load: from the frame's arrival, its last byte leaving ffmpeg, to its WebSocket message in a client, less
 * the time the model itself ran. Half load: cameras and rates are chosen so that the machine is about half busy; the figure says how
 * busy it was.
 *
 *     npx tsx test/bench/latency.bench.ts [cameras] [fps] [seconds]
 */
import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { treeCpuSeconds } from '../support/cpu.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { quantile, report } from './bench.js'

const [cameras = 6, fps = 5, seconds = 30] = process.argv.slice(2).map(Number)

const rtsp = await rtspCameras(cameras)
try {
  await using service = await TestService.start({
    pipeline: {
      cameras: Array.from({ length: cameras }, (_, index) => ({
        id: `cam-${index + 1}`,
        url: rtsp.url(`/cam${index + 1}`),
        sampleFps: fps,
      })),
    },
  })
  for (let index = 1; index <= cameras; index += 1) await service.cameraIs(`cam-${index}`, 'live')
  await pause(5_000)
  const total: number[] = []
  const infer: number[] = []
  const rest: number[] = []
  const stream = await service.stream()
  stream.onMessage((message) => {
    if (message.type !== 'detections') return
    const lateMs = Date.now() - Date.parse(message.capturedAt)
    total.push(lateMs)
    infer.push(message.timingsMs.infer)
    rest.push(lateMs - message.timingsMs.infer)
  })
  const cpu0 = treeCpuSeconds(service.pid)
  await pause(seconds * 1_000)
  const busy = (treeCpuSeconds(service.pid) - cpu0) / seconds / availableParallelism()
  stream.close()
  report('decoder-to-websocket', 'ms', {
    restP50: quantile(rest, 0.5),
    restP99: quantile(rest, 0.99),
    totalP99: quantile(total, 0.99),
    inferP50: quantile(infer, 0.5),
    inferP99: quantile(infer, 0.99),
    busyShare: busy,
    cameras,
    fps,
    n: rest.length,
  })
} finally {
  await rtsp.stop()
}
