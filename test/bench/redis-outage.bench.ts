/**
 * What a Redis that hangs costs the cameras: p99 from capture to publish while it hangs, less that while it serves. Rounds of one run
 * (serves, hangs, hangs, serves, ...), each begun once the service says how the cache is.
 *
 *     npx tsx test/bench/redis-outage.bench.ts [cameras] [fps] [seconds] [rounds]
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Readiness } from '../../src/api/gantry.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { RedisServer } from '../support/redis.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { quantile, report, undisturbed } from './bench.js'

const [cameras = 4, fps = 5, seconds = 15, rounds = 4] = process.argv.slice(2).map(Number)

const rtsp = await rtspCameras(cameras)
const redis = await RedisServer.start()
try {
  await using service = await TestService.start({
    pipeline: { cameras: cameraSettings(rtsp, cameras, fps), cache: { redis: redis.url } },
  })
  for (let index = 1; index <= cameras; index += 1) await service.cameraIs(`cam-${index}`, 'live')
  await pause(40_000)
  const cacheIs = (state: string) =>
    until(`the cache to be ${state}`, async () => {
      const { cache } = await service.json<Readiness>('/readyz')
      return cache.state === state
    })
  const stream = await service.stream()
  let sink: number[] = []
  stream.onMessage((message) => {
    if (message.type === 'detections') sink.push(message.timingsMs.captureToPublish)
  })
  const measured = () =>
    undisturbed(async () => {
      sink = []
      await pause(seconds * 1_000)
      const taken = sink
      sink = []
      return taken
    })
  const serving: number[] = []
  const hanging: number[] = []
  const whileItHangs = async () => {
    redis.freeze()
    await cacheIs('down')
    hanging.push(...(await measured()))
    redis.resume()
    await cacheIs('up')
  }
  for (let round = 0; round < rounds; round += 1) {
    if (round % 2 === 1) await whileItHangs()
    serving.push(...(await measured()))
    if (round % 2 === 0) await whileItHangs()
  }
  stream.close()
  report('redis-outage', 'ms', {
    p99: quantile(hanging, 0.99) - quantile(serving, 0.99),
    p50: quantile(hanging, 0.5) - quantile(serving, 0.5),
    servingP99Ms: quantile(serving, 0.99),
    hangingP99Ms: quantile(hanging, 0.99),
    cameras,
    fps,
    n: hanging.length,
  })
} finally {
  await redis.stop()
  await rtsp.stop()
}
