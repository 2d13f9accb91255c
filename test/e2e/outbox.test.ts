import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import type { RecentPage } from '../../src/cache/result-cache.js'
import { pageBytes } from '../../src/store/schema.js'
import { freePort } from '../support/free-port.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService, type TestStream } from '../support/service.js'
import { WebhookReceiver } from '../support/sinks.js'
import { until } from '../support/until.js'

describe('results that are stored before anybody is told', () => {
  const cleanUp: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  async function camera() {
    const rtsp = await rtspCameras(1)
    cleanUp.push(() => rtsp.stop())
    return { id: 'cam', url: rtsp.url('/cam1'), sampleFps: 5 }
  }

  async function running(cameras: readonly unknown[], like?: TestService, pipeline = {}) {
    const service = await TestService.start({ pipeline: { cameras, ...pipeline }, ...(like && { like }) })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return service
  }

  const detectionsOf = (stream: TestStream) =>
    stream.messages.flatMap((message) => (message.type === 'detections' ? [message] : []))
  const nameOf = ({ seq, capturedAt }: { seq: number; capturedAt: string }) => `${seq} ${capturedAt}`
  const range = (service: TestService) => service.json<RecentPage>('/api/v1/detections?limit=1000')

  it('R113: a viewer goes on over a SIGKILL where it was, without gap and repetition; so does who asks for the past', async () => {
    const cameras = [await camera()]
    const first = await running(cameras)
    const viewer = await first.stream()
    await viewer.detections('cam', 8)
    first.kill('SIGKILL')
    await first.exited()
    const seen = detectionsOf(viewer)
    const handled = seen[2]
    const second = await running(cameras, first)
    const again = await second.stream({ resumeAfter: handled?.cursor })
    await until('live again', () => detectionsOf(again).length > seen.length + 3, 20_000)
    const back = detectionsOf(again)
    // At the kill there may be more stored than the viewer was sent.
    expect(back.slice(0, seen.length - 3).map(nameOf)).toEqual(seen.slice(3).map(nameOf))
    expect(new Set(back.map(nameOf)).size).toBe(back.length)
    expect(again.messages.filter(({ type }) => type === 'gap')).toEqual([])
    const past = (await range(second)).items.map(nameOf)
    expect(past).toEqual(expect.arrayContaining(seen.map(nameOf)))
    again.close()
  }, 120_000)

  it('R108: what a webhook that was away has not taken is delivered after a SIGKILL, results and events, each id once or again', async () => {
    const cameras = [await camera()]
    const port = await freePort()
    const pipeline = {
      sinks: { webhook: { url: `http://127.0.0.1:${port}/`, maxBatchRecords: 50 } },
      // The receiver is of this machine.
      cameraNetworks: { allow: ['127.0.0.0/8'] },
    }
    const first = await running(cameras, undefined, pipeline)
    const viewer = await first.stream()
    await viewer.detections('cam', 8)
    first.kill('SIGKILL')
    await first.exited()
    const seen = detectionsOf(viewer).map(nameOf)
    const received: { id: string; type: string; data: { seq: number; capturedAt: string } }[] = []
    const receiver = createServer((request, response) => {
      void json(request).then((batch) => {
        received.push(...(batch as typeof received))
        response.end()
      })
    })
    receiver.listen(port, '127.0.0.1')
    await once(receiver, 'listening')
    cleanUp.push(async () => void receiver.close())
    const second = await running(cameras, first, pipeline)
    await until('all of the first run', () => {
      const names = new Set(received.map(({ data }) => nameOf(data)))
      return seen.every((name) => names.has(name))
    })
    await second.send('PATCH', '/api/v1/cameras/cam', { enabled: false })
    await until('an event', () => received.some(({ type }) => type === 'gantry.coverage.v1'))
    const results = received.filter(({ type }) => type === 'gantry.detections.v1')
    const ids = new Map(results.map(({ id, data }) => [id, nameOf(data)]))
    expect(new Set(ids.values()).size).toBe(ids.size)
    receiver.closeAllConnections()
  }, 120_000)

  it('R148: a page of the file is damaged between two runs: a webhook gets what is left of it, and word of what is not', async () => {
    const cameras = [await camera()]
    const port = await freePort()
    const pipeline = {
      sinks: { webhook: { url: `http://127.0.0.1:${port}/`, maxBatchRecords: 50 } },
      cameraNetworks: { allow: ['127.0.0.0/8'] },
    }
    const first = await running(cameras, undefined, pipeline)
    const viewer = await first.stream()
    await viewer.detections('cam', 12)
    await first.end()
    const seen = detectionsOf(viewer).map(nameOf)
    damageRecords(join(first.dir, 'data', 'records.sqlite'))
    const receiver = await WebhookReceiver.start(undefined, port)
    cleanUp.push(() => receiver.stop())
    const second = await running(cameras, first, pipeline)
    type Posted = { type: string; data: { seq: number; capturedAt: string; dropped: number; reason: string } }
    const posted = () => receiver.posted.flatMap(({ body }) => JSON.parse(body) as Posted[])
    await until('word of what is lost', () => posted().some(({ type }) => type === 'gantry.gap.v1'), 60_000)
    const gaps = posted().filter(({ type }) => type === 'gantry.gap.v1')
    expect(gaps.every(({ data }) => data.reason === 'damaged')).toBe(true)
    const dropped = gaps.reduce((sum, { data }) => sum + data.dropped, 0)
    const missing = () => {
      const names = new Set(posted().map(({ data }) => nameOf(data)))
      return seen.filter((name) => !names.has(name)).length
    }
    // Of those that were lost some may not have come to the viewer any more.
    await until('the others', () => missing() <= dropped, 60_000)
    expect(seen.length - missing()).toBeGreaterThan(seen.length / 2)
    expect(second.stderr).toContain('was damaged')
    expect(await second.metric(/gantry_store_records_total\{result="lost"\}/)).toBe(dropped)
    expect((await second.readiness()).store.state).toBe('up')
  }, 120_000)

  it('R114: a cursor from before the store is told a gap', async () => {
    const service = await running([await camera()])
    const viewer = await service.stream({ resumeAfter: 'mx07z1pc1gt0r9f-77' })
    await viewer.detections('cam')
    expect(viewer.messages).toContainEqual({ type: 'gap', dropped: 0, reason: 'resume_expired' })
    viewer.close()
  }, 60_000)

  it('with store.durability.detections: memory goes on as before: the past ends with the process', async () => {
    const cameras = [await camera()]
    const memory = { store: { durability: { detections: 'memory' } } }
    const first = await running(cameras, undefined, memory)
    const viewer = await first.stream()
    const [seen] = await viewer.detections('cam')
    expect((await range(first)).items.length).toBeGreaterThan(0)
    await first.end()
    const second = await running(cameras, first, memory)
    const again = await second.stream({ resumeAfter: seen?.cursor })
    await again.detections('cam')
    expect(again.messages.map(({ type }) => type)).toContain('gap')
    expect((await range(second)).items.map(nameOf)).not.toContain(seen && nameOf(seen))
    again.close()
  }, 120_000)
})

/** Makes noise of one of the pages with results, in the middle of them. */
function damageRecords(path: string): void {
  const bytes = readFileSync(path)
  const leafOfATable = 0x0d
  const pages = Array.from({ length: Math.floor(bytes.length / pageBytes) }, (_, index) => index * pageBytes)
  const ofResults = pages.filter(
    (at) => bytes[at] === leafOfATable && bytes.subarray(at, at + pageBytes).includes('gantry.detections.v1'),
  )
  const middle = ofResults[Math.floor(ofResults.length / 2)] ?? Number.NaN
  bytes.fill(0xa7, middle, middle + pageBytes)
  writeFileSync(path, bytes)
}
