import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CameraView } from '../../src/cameras/camera-view.js'
import { detectionsMessageSchema, type DetectionsMessage } from '../../src/messages/detections-message.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { KafkaBroker } from '../support/kafka.js'
import { consumeAll } from '../support/kafka-records.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { descendants } from '../support/processes.js'
import { RedisServer } from '../support/redis.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

/** What befell the nodes, and what the topic of results says of it. */
export type ClusterRow = Readonly<{
  fault: string
  /** Cameras that another node had afterwards than before. */
  moved: number
  /** Longest time without a result of a camera, from one captured picture to the next, and of those that stayed where they were. */
  longestGapMs: number
  longestGapStayedMs: number
  /** Longest that two nodes published one camera. */
  twoOwnersMs: number
  /** Records that came again, by their ids. */
  repeated: number
  results: number
}>

export type ClusterReport = Readonly<{ rows: readonly ClusterRow[]; results: number }>

export type ClusterLengths = Readonly<{ cameras: number; stoppedMs: number; outageMs: number }>

type Window = Readonly<{ fault: string; fromMs: number; toMs: number; moved: ReadonlySet<string> }>

const sampleFps = 2
/** Around a fault: its first result after and its last before are looked for there. */
const aroundMs = 3_000

/** Three nodes, and a fourth for a while, with RTSP cameras, a broker and Redis, in one fault after the other. */
export async function clusterRounds(
  { cameras, stoppedMs, outageMs }: ClusterLengths,
  progress: (text: string) => void,
): Promise<ClusterReport> {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-cluster-rounds-'))
  const clip = join(folder, 'clip.mp4')
  const source = ['-f', 'lavfi', '-i', 'testsrc2=s=320x176:r=5:d=4']
  const codec = ['-c:v', 'libx264', '-g', '5', '-bf', '0', '-pix_fmt', 'yuv420p']
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-nostdin', ...source, ...codec, clip])
  addModel(folder, 'red', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
  const rtsp = await rtspCameras(cameras, clip)
  const [broker, redis] = await Promise.all([KafkaBroker.start(), RedisServer.start()])
  const nodes = new Map<string, TestService>()

  const start = async (node: string, more: object = {}) => {
    const like = nodes.get(node)
    const pipeline = {
      models: { repository: folder },
      ensemble: 'red',
      cluster: { id: 'rounds', node, slots: 64 },
      cache: { redis: { url: redis.url } },
      sinks: { kafka: { brokers: [broker.address] } },
      ...more,
    }
    nodes.set(node, await TestService.start({ pipeline, startedWithinMs: 120_000, ...(like && { like }) }))
  }
  const some = () => [...nodes.values()].find((each) => each.isRunning) as TestService
  const ownersNow = async (): Promise<ReadonlyMap<string, string>> => {
    const { items } = await some().json<{ items: CameraView[] }>('/api/v1/cameras')
    return new Map(items.map(({ id, node, status }) => [id, status.state === 'live' ? (node ?? '') : '']))
  }
  /** Each camera is live, and each of these nodes has some. */
  const settled = (names: readonly string[]) =>
    until(
      `cameras on ${names.join(', ')}`,
      async () => {
        const owners = await ownersNow().catch(() => new Map<string, string>())
        const isLive = owners.size === cameras && ![...owners.values()].includes('')
        return isLive && [...new Set(owners.values())].sort().join() === names.join() ? owners : undefined
      },
      180_000,
      250,
    )
  const windows: Window[] = []
  /** @param after - nodes that have cameras then */
  const round = async (fault: string, after: readonly string[], befall: () => Promise<void>) => {
    progress(fault)
    const before = await ownersNow()
    const fromMs = Date.now()
    await befall()
    const now = await settled(after)
    const endMs = Date.now() + aroundMs
    await until('results', () => Date.now() > endMs, 2 * aroundMs)
    const moved = new Set([...now].filter(([id, node]) => before.get(id) !== node).map(([id]) => id))
    windows.push({ fault, fromMs, toMs: Date.now(), moved })
  }
  const passed = (ms: number) => {
    const endMs = performance.now() + ms
    return until('its time', () => performance.now() > endMs, 2 * ms)
  }
  const ended = async (node: string, signal: NodeJS.Signals) => {
    nodes.get(node)?.kill(signal)
    await nodes.get(node)?.exited()
  }

  try {
    progress('start')
    await start('a', { cameras: cameraSettings(rtsp, cameras, sampleFps) })
    await start('b')
    await start('c')
    await settled(['a', 'b', 'c'])
    await round('a node joins', ['a', 'b', 'c', 'd'], () => start('d'))
    await round('a node leaves (SIGTERM)', ['a', 'b', 'c'], () => ended('d', 'SIGTERM'))
    await round('kill -9 of a node', ['a', 'b'], () => ended('c', 'SIGKILL'))
    await round('it comes back', ['a', 'b', 'c'], () => start('c'))
    await round(`SIGSTOP of a node for ${stoppedMs / 1_000} s`, ['a', 'b', 'c'], async () => {
      const { pid } = nodes.get('b') as TestService
      const all = [pid, ...descendants(pid).map((each) => each.pid)]
      for (const each of all) process.kill(each, 'SIGSTOP')
      await passed(stoppedMs)
      for (const each of all) process.kill(each, 'SIGCONT')
      // It notices that it has lost them.
      await passed(5_000)
    })
    await round(`brokers away for ${outageMs / 1_000} s`, ['a', 'b', 'c'], async () => {
      await broker.kill()
      await passed(outageMs)
      await broker.start()
    })
    await round(`Redis away for ${outageMs / 1_000} s`, ['a', 'b', 'c'], async () => {
      await redis.kill()
      await passed(outageMs)
      await redis.start()
    })
    await round('rolling restart of all', ['a', 'b', 'c'], async () => {
      for (const node of ['a', 'b', 'c']) {
        await ended(node, 'SIGTERM')
        await start(node)
        await settled(['a', 'b', 'c'])
      }
    })
    progress('reads the topic')
    const lastMs = windows.at(-1)?.toMs ?? 0
    return inspected(await resultsOf(broker, cameras, lastMs), windows)
  } finally {
    await Promise.all([...nodes.values()].map((node) => node[Symbol.asyncDispose]()))
    await Promise.all([broker.stop(), redis.stop(), rtsp.stop()])
    rmSync(folder, { recursive: true, force: true })
  }
}

type Result = DetectionsMessage & Readonly<{ id: string; atMs: number }>

/** Until each camera has one that is as late. */
async function resultsOf(broker: KafkaBroker, cameras: number, untilMs: number): Promise<readonly Result[]> {
  const consumer = await consumeAll(broker.address, 'gantry.detections.v1')
  const all = () =>
    consumer.records.map(({ value, headers }) => {
      const message = detectionsMessageSchema.parse(value)
      return { ...message, id: headers['ce_id'] ?? '', atMs: Date.parse(message.capturedAt) }
    })
  await until(
    'the topic',
    () => new Set(all().flatMap(({ cameraId, atMs }) => (atMs > untilMs ? [cameraId] : []))).size === cameras,
    120_000,
    1_000,
  )
  await consumer.stop()
  return all()
}

/** Cameras go on for a while after the last fault. */
function inspected(results: readonly Result[], windows: readonly Window[]): ClusterReport {
  const firsts = [...new Map(results.map((result) => [result.id, result])).values()]
  const byCamera = new Map<string, Result[]>()
  for (const result of firsts.toSorted((one, other) => one.atMs - other.atMs)) {
    const all = byCamera.get(result.cameraId) ?? []
    byCamera.set(result.cameraId, all)
    all.push(result)
  }
  const rows = windows.map(({ fault, fromMs, toMs, moved }) => {
    const gaps = [...byCamera].map(([id, all]) => [id, longestGap(all, fromMs, toMs)] as const)
    const within = results.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
    return {
      fault,
      moved: moved.size,
      longestGapMs: Math.max(...gaps.map(([, ms]) => ms)),
      longestGapStayedMs: Math.max(0, ...gaps.flatMap(([id, ms]) => (moved.has(id) ? [] : [ms]))),
      twoOwnersMs: Math.max(...[...byCamera.values()].map((all) => twoOwners(all, fromMs, toMs))),
      repeated: within.length - new Set(within.map(({ id }) => id)).size,
      results: within.length,
    }
  })
  return { rows, results: firsts.length }
}

/** From a result to the next, that of before the window and that of after it too. */
function longestGap(all: readonly Result[], fromMs: number, toMs: number): number {
  const near = all.filter(({ atMs }) => atMs >= fromMs - aroundMs && atMs <= toMs + aroundMs)
  return Math.max(0, ...near.slice(1).map(({ atMs }, index) => atMs - (near[index]?.atMs ?? atMs)))
}

/** From the first to the last result of an older owner that came after one of a newer owner: for so long both looked at the camera. */
function twoOwners(all: readonly Result[], fromMs: number, toMs: number): number {
  const late = new Map<number, Readonly<{ firstMs: number; lastMs: number }>>()
  let newest = 0
  for (const { owner, atMs } of all) {
    const generation = owner?.generation ?? 0
    newest = Math.max(newest, generation)
    if (generation === newest || atMs < fromMs || atMs > toMs) continue
    late.set(generation, { firstMs: late.get(generation)?.firstMs ?? atMs, lastMs: atMs })
  }
  return Math.max(0, ...[...late.values()].map(({ firstMs, lastMs }) => lastMs - firstMs + 1_000 / sampleFps))
}

/** What the rows have against the product, as sentences; none when all is well. @param slackMs - of a machine that is busy */
export function clusterComplaints({ rows }: ClusterReport, slackMs: number): readonly string[] {
  const framesMs = 2_000 / sampleFps + slackMs
  return rows.flatMap(({ fault, longestGapMs, longestGapStayedMs, twoOwnersMs }) => {
    const dies = /kill|SIGSTOP/.test(fault)
    const bound = (dies ? 10_000 : 2_000) + framesMs
    return [
      longestGapMs > bound
        ? `${fault}: a camera was without a result for ${longestGapMs} ms, at most ${bound}`
        : [],
      longestGapStayedMs > framesMs + 1_000 && !dies
        ? `${fault}: a camera that stayed was without a result for ${longestGapStayedMs} ms`
        : [],
      twoOwnersMs > 6_000 + framesMs ? `${fault}: two nodes published a camera for ${twoOwnersMs} ms` : [],
    ].flat()
  })
}
