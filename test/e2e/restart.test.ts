import { afterEach, describe, expect, it } from 'vitest'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { alive, descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

describe('a service that is hit', () => {
  const cleanUp: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  async function running(cameras: number, pipeline: Record<string, unknown> = {}, sampleFps = 3) {
    const rtsp: LoopingRtspServer = await rtspCameras(cameras)
    cleanUp.push(() => rtsp.stop())
    const service = await TestService.start({
      pipeline: {
        cameras: Array.from({ length: cameras }, (_, index) => ({
          id: `cam-${index + 1}`,
          url: rtsp.url(`/cam${index + 1}`),
          sampleFps,
        })),
        ...pipeline,
      },
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return { rtsp, service }
  }

  function enginePids(service: TestService): number[] {
    // A decoder that is just being forked still bears the name of its engine.
    return descendants(service.pid)
      .filter(({ command, parent }) => parent === service.pid && command.includes('processes/engine/main.js'))
      .map(({ pid }) => pid)
  }

  function decoderPids(pid: number): number[] {
    return descendants(pid)
      .filter(({ command }) => command.includes('ffmpeg'))
      .map(({ pid: child }) => child)
  }

  it('R10: has its engine back within 3 s of a SIGKILL, says so meanwhile, and loses no count', async () => {
    const { service } = await running(2)
    const stream = await service.stream()
    const [before] = await stream.detections('cam-1')
    const [engine] = enginePids(service)
    if (engine === undefined) throw new Error('the service has no engine')
    process.kill(engine, 'SIGKILL')
    const killedMs = performance.now()
    await until('not ready', async () => (await fetch(`${service.url}/readyz`)).status === 503, 1_000, 5)
    await service.ready(10_000)
    const backMs = performance.now() - killedMs
    const [after] = await stream.detections('cam-1')
    expect(after?.seq).toBeGreaterThan(before?.seq ?? 0)
    expect(await service.metric(/gantry_engine_restarts_total\{engine="0"\}/)).toBe(1)
    const camera = await service.camera('cam-1')
    const { received, inferred, superseded, suspect, lost, shed } = camera.stats.frames
    const ended = inferred + superseded + suspect + lost + Object.values(shed).reduce((sum, n) => sum + n, 0)
    expect(received - ended).toBeGreaterThanOrEqual(0)
    expect(received - ended).toBeLessThanOrEqual(3)
    stream.close()
    expect(backMs).toBeLessThan(await service.boundMs(3_000, backMs))
  })

  it('R3: leaves no engine and no decoder behind when it is killed with SIGKILL', async () => {
    const { service } = await running(2)
    await service.cameraIs('cam-1', 'live')
    await service.cameraIs('cam-2', 'live')
    const pids = descendants(service.pid).map(({ pid }) => pid)
    expect(decoderPids(service.pid)).toHaveLength(2)
    service.kill('SIGKILL')
    await service.exited()
    await until('no orphan', () => pids.every((pid) => !alive(pid)), 2_000)
  })

  it('R20: drains on SIGTERM: readiness off, sockets closed with 1001, exit 0 within 10 s', async () => {
    const { service } = await running(2)
    const stream = await service.stream()
    await stream.detections('cam-1')
    const closed = stream.closed()
    const exited = service.exited()
    const askedMs = performance.now()
    service.kill('SIGTERM')
    expect(await closed).toBe(1001)
    expect(await exited).toBe(0)
    expect(performance.now() - askedMs).toBeLessThan(10_000)
  })

  // Three tries: a neighbour on the machine may hold up either process for longer than the bound.
  it(
    'R20: at full load readiness is off within 100 ms of SIGTERM',
    { retry: 2, timeout: 240_000 },
    async () => {
      const { service } = await running(8, { inference: { instances: 1 } }, 25)
      await until(
        'more frames than can be analysed',
        async () => (await service.camera('cam-4')).stats.frames.superseded > 20,
        60_000,
      )
      // One connection, kept alive: the next request goes out when the answer before is there.
      const poll = async () => {
        const startMs = performance.now()
        const response = await fetch(`${service.url}/readyz`)
        await response.arrayBuffer()
        return { status: response.status, endMs: performance.now(), tookMs: performance.now() - startMs }
      }
      const before: number[] = []
      while (before.length < 100) before.push((await poll()).tookMs)
      const askedMs = performance.now()
      service.kill('SIGTERM')
      let answer = await poll()
      while (answer.status === 200) answer = await poll()
      expect(answer.status).toBe(503)
      // An answer can be no quicker than answers are: on a busy machine the slowest just before the signal counts, twice, as one may have
      // been under way.
      expect(answer.endMs - askedMs).toBeLessThan(Math.max(100, 2 * Math.max(...before)))
      expect(await service.exited()).toBe(0)
      expect(performance.now() - askedMs).toBeLessThan(10_000)
    },
  )

  it('keeps a camera over a restart only when asked to', async () => {
    const { rtsp, service } = await running(1)
    await service.send('POST', '/api/v1/cameras', { id: 'kept', url: rtsp.url('/cam1'), persist: true })
    await service.send('POST', '/api/v1/cameras', { id: 'passing', url: rtsp.url('/cam1') })
    await service.end()
    const again = await TestService.start({ ...service.options, like: service })
    cleanUp.push(() => again[Symbol.asyncDispose]())
    const cameras = await again.json<{ items: { id: string }[] }>('/api/v1/cameras')
    expect(cameras.items.map(({ id }) => id).sort()).toEqual(['cam-1', 'kept'])
  })

  it('spreads cameras over its engines, and one engine can die alone', async () => {
    const { service } = await running(2, { engines: 2, inference: { instances: 1 } })
    const [first = 0] = enginePids(service)
    expect(enginePids(service)).toHaveLength(2)
    const stream = await service.stream()
    await stream.detections('cam-1')
    await stream.detections('cam-2')
    process.kill(first, 'SIGKILL')
    await until(
      'one engine away',
      async () => (await fetch(`${service.url}/readyz`)).status === 503,
      1_000,
      5,
    )
    const cameras = await Promise.all(['cam-1', 'cam-2'].map((id) => service.camera(id)))
    expect(cameras.map(({ status }) => status.state).sort()).toEqual(['connecting', 'live'])
    await service.ready(10_000)
    stream.close()
  })

  it('R7: takes a camera up again after its decoder was killed', async () => {
    const { service } = await running(1)
    await service.cameraIs('cam-1', 'live')
    const [decoder = 0] = decoderPids(service.pid)
    process.kill(decoder, 'SIGKILL')
    const camera = await until('a second decoder', async () => {
      const view = await service.camera('cam-1')
      return view.status.state === 'live' && view.status.attempts > 1 ? view : undefined
    })
    expect(camera.status.attempts).toBe(2)
  })
})
