import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import type { coverageSchema } from '../../src/api/coverage-schema.js'
import type { HeadroomView } from '../../src/api/gantry.js'
import type { CameraView } from '../../src/cameras/camera-view.js'
import type { RecentPage } from '../../src/cache/result-cache.js'
import { kafkaMissing } from '../support/kafka.js'
import { TestNodes } from '../support/nodes.js'
import { descendants } from '../support/processes.js'
import type { TestService } from '../support/service.js'
import { until } from '../support/until.js'

const cameras = 9
const missing = await kafkaMissing()

describe.skipIf(missing !== undefined)('any node answers for all', () => {
  let nodes: TestNodes

  beforeAll(async () => {
    nodes = await TestNodes.start()
  }, 120_000)
  afterEach(() => nodes.clear())
  afterAll(() => nodes[Symbol.asyncDispose]())

  async function three(): Promise<readonly [TestService, TestService, TestService]> {
    const first = await nodes.add('a', { pipeline: { cameras: nodes.cameras(cameras) } })
    const second = await nodes.add('b')
    const third = await nodes.add('c')
    await nodes.spread(third, cameras, 3)
    return [first, second, third]
  }

  const pageOf = (service: TestService, query: string) =>
    service.json<RecentPage>(`/api/v1/detections?${query}`)

  /** Everything up to a time, each page asked of another node. */
  async function resultsUpTo(services: readonly TestService[], to: string, more = '') {
    const found: string[] = []
    for (let cursor = '', asked = 0; ; asked += 1) {
      const service = services[asked % services.length]!
      const page = await pageOf(service, `limit=50&to=${to}${more}${cursor && `&cursor=${cursor}`}`)
      expect(page.incomplete).toBeUndefined()
      found.push(...page.items.map(({ capturedAt, cameraId, seq }) => `${capturedAt} ${cameraId} ${seq}`))
      if (page.nextCursor === undefined) return found
      expect(page.nextCursor.length).toBeLessThan(100)
      cursor = page.nextCursor
    }
  }

  it('R175: past results of all nodes are one list on each, while new ones come, and who is missing is named', async () => {
    const [first, second, third] = await three()
    const since = new Date().toISOString()
    await until('results of all cameras', async () => {
      const { items } = await pageOf(second, `limit=1000&from=${since}`)
      return items.length > 200 && new Set(items.map(({ cameraId }) => cameraId)).size === cameras
    }, 60_000, 250) // prettier-ignore
    const to = new Date(Date.now() - 1_000).toISOString()
    // What is on its way at the first question has come by the second one.
    await until('the same list twice', async () => {
      const [once, again] = [await resultsUpTo([first], to), await resultsUpTo([first, second, third], to)]
      return once.length > 100 && JSON.stringify(once) === JSON.stringify(again)
    }, 60_000, 100) // prettier-ignore
    const all = await resultsUpTo([third, first], to)
    expect(new Set(all).size).toBe(all.length)
    const times = all.map((one) => one.split(' ')[0]!)
    expect(times).toEqual([...times].sort().reverse())
    for (const id of ['cam-1', 'cam-5', 'cam-9'])
      expect(await resultsUpTo([second], to, `&camera=${id}`)).toEqual(
        all.filter((one) => one.includes(` ${id} `)),
      )
    expect((await first.fetch('/api/v1/detections?cursor=none')).status).toBe(400)
    expect((await first.fetch('/api/v1/detections?camera=nobody')).status).toBe(404)
    expect((await first.fetch('/api/v1/detections?label=nothing')).status).toBe(400)

    const processes = [third.pid, ...descendants(third.pid).map(({ pid }) => pid)]
    for (const pid of processes) process.kill(pid, 'SIGSTOP')
    const askedMs = performance.now()
    const page = await pageOf(first, 'limit=20')
    process.stderr.write(`a page without a node that hangs: ${Math.round(performance.now() - askedMs)} ms\n`)
    expect(page.incomplete).toEqual([expect.stringMatching(/^c: .*does not answer/)])
    expect(page.items.length).toBe(20)
    for (const pid of processes) process.kill(pid, 'SIGKILL')
    await third.exited()
    const gone = await until('it is out of the group', async () => {
      const { incomplete = [] } = await pageOf(first, 'limit=1000')
      return incomplete[0]?.includes('left the cluster') ? incomplete : undefined
    }, 60_000, 250) // prettier-ignore
    expect(gone).toEqual([expect.stringMatching(/^c: it left the cluster by 20/)])
    const later = new Date().toISOString()
    await until('a page of later results alone', async () => {
      const { items, incomplete } = await pageOf(second, `limit=10&from=${later}`)
      return items.length === 10 && incomplete === undefined
    }, 30_000) // prettier-ignore
    // A camera that is removed takes its results along on each node that had it.
    expect((await first.fetch('/api/v1/cameras/cam-1', { method: 'DELETE' })).status).toBe(204)
    await until(
      'no results of it',
      async () => (await first.fetch('/api/v1/detections?camera=cam-1')).status === 404,
    )
    expect((await second.fetch('/api/v1/detections?camera=cam-1')).status).toBe(404)
  }, 240_000)

  type Coverage = z.output<typeof coverageSchema>

  it('R176: coverage and room are those of all nodes on each, and of a camera that went over as one time', async () => {
    const [first, second, third] = await three()
    const coverageOf = (service: TestService, query = '') =>
      service.json<Coverage>(`/api/v1/coverage?${query}`)
    const watched = async (service: TestService) =>
      (await coverageOf(service, 'spans=0')).items.filter(({ watchedSeconds }) => watchedSeconds > 2)
    for (const service of [first, second, third])
      await until('all cameras watched', async () => (await watched(service)).length === cameras, 60_000, 250)
    const { items } = await first.json<{ items: CameraView[] }>('/api/v1/cameras')
    const moved = items.filter(({ node }) => node === 'c').map(({ id }) => id)
    third.kill('SIGTERM')
    expect(await third.exited()).toBe(0)
    await nodes.spread(first, cameras, 2)
    // Its store is gone for the others while it is; it is not forgotten.
    const without = await until('it is missed', async () => {
      const { incomplete } = await coverageOf(second)
      return incomplete
    }, 30_000, 250) // prettier-ignore
    expect(without).toEqual([expect.stringMatching(/^c: it left the cluster by 20/)])

    const back = await nodes.add('c', { like: third })
    await nodes.spread(back, cameras, 3)
    const whole = await until('the time of all nodes', async () => {
      const answer = await coverageOf(first)
      return answer.incomplete === undefined && answer.items.length === cameras ? answer : undefined
    }, 30_000, 250) // prettier-ignore
    for (const { cameraId, spans, ...time } of whole.items) {
      // Without hole or overlap, on any node.
      for (const [index, span] of spans!.entries())
        if (index > 0) expect(span.from, cameraId).toBe(spans![index - 1]!.to)
      const lengthMs = Date.parse(time.to) - Date.parse(time.from)
      expect(Math.round((time.watchedSeconds + time.blindSeconds) * 1_000)).toBe(lengthMs)
      if (moved.includes(cameraId))
        process.stderr.write(`${cameraId}: ${JSON.stringify(time.blindSecondsByCause)}\n`)
    }
    for (const id of moved) {
      const [one] = (await coverageOf(second, `cameraId=${id}`)).items
      const [same] = whole.items.filter(({ cameraId }) => cameraId === id)
      expect(one!.from).toBe(same!.from)
    }
    expect((await first.fetch('/api/v1/coverage?cameraId=nobody')).status).toBe(404)

    const room = await until('the room of all nodes', async () => {
      const view = await second.json<HeadroomView>('/api/v1/headroom?sampleFps=1')
      return view.cluster?.cameras === null ? undefined : view.cluster
    }, 60_000, 500) // prettier-ignore
    expect(room.nodes.map(({ node }) => node).sort()).toEqual(['a', 'b', 'c'])
    expect(room.sum).toBeGreaterThanOrEqual(room.cameras!)
    process.stderr.write(`room: ${JSON.stringify(room)}\n`)
    for (const id of items.map(({ id }) => id))
      expect((await second.fetch(`/api/v1/headroom?like=${id}`)).status).toBe(200)
    expect((await second.fetch('/api/v1/headroom?like=nobody')).status).toBe(404)
    expect((await first.readiness()).cluster?.cameras).toBe(cameras)
  }, 240_000)
})
