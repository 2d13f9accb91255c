import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { residentBytes } from '../support/cpu.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { fullLength } from '../support/full-length.js'
import { descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

const cameras = ['cam-1', 'cam-2', 'cam-3', 'cam-4']
const sidePx = 1280
/** The clips have 25 frames a second. */
const sampleFps = fullLength ? 25 : 10
const watchedMs = fullLength ? 600_000 : 0
const timeout = watchedMs + 120_000

/** The detector of the repository at nine times the pixels, in one instance: far slower than its cameras. */
function slowRepository(): string {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-slow-'))
  const shipped = fileURLToPath(new URL('../../models/ppe_detect/', import.meta.url))
  mkdirSync(join(dir, 'slow/1'), { recursive: true })
  cpSync(join(shipped, '1/model.onnx'), join(dir, 'slow/1/model.onnx'))
  cpSync(join(shipped, 'labels.txt'), join(dir, 'slow/labels.txt'))
  const points = [8, 16, 32].reduce((sum, stride) => sum + (sidePx / stride) ** 2, 0)
  writeFileSync(
    join(dir, 'slow/config.pbtxt'),
    `max_batch_size: 1
     input { name: "images" data_type: TYPE_UINT8 dims: [ ${sidePx}, ${sidePx}, 3 ] }
     output { name: "output0" data_type: TYPE_FP32 dims: [ 11, ${points} ] label_filename: "labels.txt" }`,
  )
  return dir
}

/** Upper end of the bucket that holds the p99 of the time between two frames of a camera, over all cameras. */
function gapP99Ms(metrics: string): number {
  const counts = new Map<number, number>()
  for (const [, le, count] of metrics.matchAll(
    /^gantry_decode_gap_seconds_bucket\{.*?le="([^"]+)".*?\} (\d+)$/gm,
  )) {
    const seconds = le === '+Inf' ? Infinity : Number(le)
    counts.set(seconds, (counts.get(seconds) ?? 0) + Number(count))
  }
  const all = counts.get(Infinity) ?? 0
  return Math.min(...[...counts].filter(([, count]) => count >= 0.99 * all).map(([s]) => s)) * 1_000
}

describe('a detector slower than its cameras', () => {
  const repository = slowRepository()
  let rtsp: LoopingRtspServer
  let service: TestService

  beforeAll(async () => {
    rtsp = await rtspCameras(cameras.length)
    service = await TestService.start({
      pipeline: {
        models: { repository, control: 'explicit' },
        ensemble: 'slow',
        inference: { providers: ['cpu'], instances: 1 },
        cameras: cameras.map((id, index) => ({ id, url: rtsp.url(`/cam${index + 1}`), sampleFps })),
      },
    })
    for (const id of cameras) await service.cameraIs(id, 'live', 30_000)
  }, 90_000)

  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await rtsp?.stop()
    rmSync(repository, { recursive: true, force: true })
  })

  const ourMemory = () =>
    [
      service.pid,
      ...descendants(service.pid)
        .filter(({ command }) => /main\.js/.test(command))
        .map(({ pid }) => pid),
    ]
      .map(residentBytes)
      .reduce((sum, bytes) => sum + bytes, 0)

  it('R8: serves every camera alike and keeps its memory', { timeout, retry: 2 }, async () => {
    const stream = await service.stream()
    await stream.detections('cam-1', 5)
    const before = ourMemory()
    const results = new Map(cameras.map((id) => [id, 0]))
    const queueMs: number[] = []
    const inferMs: number[] = []
    stream.onMessage((message) => {
      if (message.type !== 'detections') return
      results.set(message.cameraId, (results.get(message.cameraId) ?? 0) + 1)
      queueMs.push(message.timingsMs.queue)
      inferMs.push(message.timingsMs.infer)
    })
    const endMs = performance.now() + watchedMs
    let most = 0
    const watch = () => {
      most = Math.max(most, ourMemory())
      return performance.now() >= endMs
    }
    await until('the end', watch, watchedMs + 5_000, 1_000)
    await stream.detections('cam-1', 15)
    stream.close()
    const grownMiB = (Math.max(most, ourMemory()) - before) / 2 ** 20
    expect(grownMiB).toBeLessThan(150)
    if (fullLength) process.stderr.write(`${JSON.stringify({ grownMiB, results: [...results] })}\n`)

    const mean = [...results.values()].reduce((sum, count) => sum + count, 0) / cameras.length
    for (const [id, count] of results) expect(count, id).toBeGreaterThanOrEqual(0.8 * mean)
    // A frame that waits is replaced by the next one of its camera, so none grows older than the time between two.
    const queueP99Ms = queueMs.sort((a, b) => a - b)[Math.floor(0.99 * queueMs.length)]
    process.stderr.write(
      `R8: ${queueMs.length} frames, queue p99 ${queueP99Ms} ms, run ${Math.max(...inferMs)} ms\n`,
    )
    // On a machine that is busy decoders are late, and the next frame with them.
    const betweenMs = Math.max(1_000 / sampleFps, gapP99Ms(await service.metrics()))
    expect(queueP99Ms).toBeLessThan(2 * betweenMs)
    const superseded = await service.metric(
      /gantry_frames_total\{camera="[^"]+",state="superseded",cause=""\}/,
    )
    expect(superseded).toBeGreaterThan(cameras.length)
    for (const id of cameras) {
      const { received, shed, ...endings } = (await service.camera(id)).stats.frames
      const ended = [...Object.values(endings), ...Object.values(shed)].reduce((sum, count) => sum + count, 0)
      expect(received - ended, id).toBeLessThanOrEqual(3)
    }
  })
})
