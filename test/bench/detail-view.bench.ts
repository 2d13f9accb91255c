/**
 * What it costs a service, and a line to it, when one camera is looked at: `wall` has the live pictures of all cameras, as the page shows them;
 * `detail` takes those of one camera in its own resolution besides, as the page does while it is enlarged: a question a second, and no
 * picture twice. Ways in turn, in rounds of one run; CPU is of all processes of the service, ended decoders included, in cores. On a busy
 * machine fewer live pictures come in `detail`: a small `sampleFps` leaves that out.
 *
 *     npm run build:server && npx tsx test/bench/detail-view.bench.ts [cameras] [seconds] [rounds] [sampleFps]
 */
import { setTimeout as pause } from 'node:timers/promises'
import { nowMs } from '../../src/lifecycle/clock.js'
import { treeCpuSeconds } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { quantile, report, undisturbed } from './bench.js'

const [cameras = 4, seconds = 20, rounds = 5, sampleFps = 5] = process.argv.slice(2).map(Number)
const settleMs = 2_000

const rtsp = await rtspCameras(cameras)
const service = await TestService.start({
  pipeline: { cameras: cameraSettings(rtsp, cameras, sampleFps) },
})
const path = '/api/v1/cameras/cam-1/snapshot.jpg?overlay=1'

/** As the page asks. @returns pictures that came, and their bytes. */
async function look(untilMs: number): Promise<{ pictures: number; bytes: number; tookMs: number[] }> {
  const seen = { pictures: 0, bytes: 0, tookMs: [] as number[] }
  let etag = ''
  while (nowMs() < untilMs) {
    const beganMs = nowMs()
    const answer = await service.fetch(path, { headers: { 'if-none-match': etag } })
    const bytes = (await answer.arrayBuffer()).byteLength
    if (answer.status === 200) {
      etag = answer.headers.get('etag') ?? ''
      seen.pictures += 1
      seen.bytes += bytes
      seen.tookMs.push(nowMs() - beganMs)
    }
    await pause(Math.max(1_000, nowMs() - beganMs))
  }
  return seen
}

async function round(way: 'wall' | 'detail') {
  const live = await service.stream({ cameras: ['*'], frames: true })
  try {
    await pause(settleMs)
    const began = { atMs: nowMs(), cpu: treeCpuSeconds(service.pid), pictures: live.pictures.length }
    const endMs = began.atMs + seconds * 1e3
    const seen = way === 'detail' ? await look(endMs) : undefined
    await pause(Math.max(0, endMs - nowMs()))
    const tookS = (nowMs() - began.atMs) / 1e3
    const liveBytes = live.pictures.slice(began.pictures).reduce((sum, each) => sum + each.length, 0)
    return {
      cores: (treeCpuSeconds(service.pid) - began.cpu) / tookS,
      livePerSecond: (live.pictures.length - began.pictures) / tookS,
      liveKilobytes: liveBytes / tookS / 1e3,
      ownPerSecond: (seen?.pictures ?? 0) / tookS,
      ownKilobytes: (seen?.bytes ?? 0) / tookS / 1e3,
      ownTookMs: quantile(seen?.tookMs ?? [0], 0.5),
    }
  } finally {
    live.close()
  }
}

try {
  const isOwn = async () => (await service.fetch(path)).headers.get('gantry-picture') === 'own'
  await until('a picture of its own resolution', isOwn, 60_000)
  const ways = { wall: [], detail: [] } as Record<'wall' | 'detail', Awaited<ReturnType<typeof round>>[]>
  for (let at = 0; at < rounds; at += 1) {
    // What begins a round is not always what ends it.
    const order = at % 2 === 0 ? (['wall', 'detail'] as const) : (['detail', 'wall'] as const)
    for (const way of order) ways[way].push(await undisturbed(() => round(way)))
  }
  for (const [way, taken] of Object.entries(ways)) {
    const middle = (name: keyof (typeof taken)[number]) =>
      quantile(
        taken.map((each) => each[name]),
        0.5,
      )
    report(`detail-view ${way}`, 'cores', {
      ...{ cores: middle('cores'), livePerSecond: middle('livePerSecond') },
      ...{ liveKilobytes: middle('liveKilobytes'), ownPerSecond: middle('ownPerSecond') },
      ...{ ownKilobytes: middle('ownKilobytes'), ownTookMs: middle('ownTookMs') },
      ...{ cameras, seconds, rounds, sampleFps },
    })
  }
} finally {
  await service[Symbol.asyncDispose]()
  await rtsp.stop()
}
