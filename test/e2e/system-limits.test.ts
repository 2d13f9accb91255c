import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { get } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CameraView } from '../../src/cameras/camera-view.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const prlimitWorks = spawnSync('prlimit', ['--version']).status === 0

function overNewConnection({ url }: TestService): Promise<number> {
  return new Promise((resolve, reject) => {
    get(`${url}/healthz`, { agent: false }, (response) => resolve(response.resume().statusCode ?? 0))
      .on('error', reject)
      .setTimeout(5_000, () => reject(new Error('no answer')))
  })
}

const nofile = (pid: number, limit: number) =>
  expect(spawnSync('prlimit', ['--pid', `${pid}`, `--nofile=${limit}:4096`]).status).toBe(0)

describe.skipIf(!prlimitWorks)('R23: too few file descriptors', () => {
  async function service(cameras: readonly object[]): Promise<TestService> {
    const models = tempDir()
    addModel(models, 'red', { onnx: redDetector('uint8-nhwc') })
    const running = await TestService.start({
      pipeline: { models: { repository: models }, ensemble: 'red', cameras, inference: { instances: 1 } },
    })
    onTestFinished(() => running[Symbol.asyncDispose]())
    return running
  }

  const enginePid = ({ pid }: TestService): number =>
    descendants(pid).find(({ command }) => command.includes('processes/engine/main.js'))?.pid ?? 0

  /** The limit that leaves `count` numbers for new descriptors. */
  function leaving(count: number, pid: number): number {
    const taken = new Set(readdirSync(`/proc/${pid}/fd`).map(Number))
    let limit = 0
    for (let free = 0; free < count || taken.has(limit); limit += 1) if (!taken.has(limit)) free += 1
    return limit
  }

  const cameras = async (running: TestService) =>
    (await running.json<{ items: CameraView[] }>('/api/v1/cameras')).items

  it('R23: are told as what they are, and cameras come when there is room again', async () => {
    const rtsp = await rtspCameras(4)
    onTestFinished(() => rtsp.stop())
    const running = await service([])
    const engine = enginePid(running)
    // Each needs two, and some more while it starts.
    nofile(engine, leaving(9, engine))
    for (const camera of cameraSettings(rtsp, 4, 5)) await running.send('POST', '/api/v1/cameras', camera)
    const told = /^no file descriptor is left for this process \(limit of open files: \d+\)/
    await until(
      'a camera without a descriptor',
      async () =>
        (await cameras(running)).some(({ status }) => status.state === 'backoff' && told.test(status.reason)),
      30_000,
    )
    expect((await cameras(running)).map(({ status }) => status.state)).not.toContain('failed')
    expect(running.stderr).toMatch(/"msg":"a limit of the system keeps the camera from starting"/)
    expect(running.stderr).toMatch(/"hint":"Raise it: LimitNOFILE=/)

    nofile(engine, 1024)
    for (const { id } of await cameras(running)) await running.cameraIs(id, 'live', 60_000)
    expect(enginePid(running)).toBe(engine)
  }, 120_000)

  it('R23: leave the engine alive when it has none at all', async () => {
    const running = await service([{ id: 'pushed', url: 'push:' }])
    const engine = enginePid(running)
    nofile(engine, 1)
    await running.send('POST', '/api/v1/cameras', { id: 'film', url: 'rtsp://127.0.0.1:9/x' })
    await until('two beats', async () => (await running.camera('film')).status.state === 'backoff')
    const { reason } = (await running.camera('film')).status
    expect(reason).toMatch(/^no file descriptor is left/)
    await until('a word in the log', () => running.stderr.includes('file descriptors run out'), 30_000)
    expect(enginePid(running)).toBe(engine)
    expect((await running.ready()).engines[0]).toMatchObject({ state: 'ready', restarts: 0 })
  }, 60_000)

  it('R23: leave the service alive when it can take no connection, and it takes them again', async () => {
    const running = await service([])
    nofile(running.pid, leaving(0, running.pid))
    await expect(overNewConnection(running)).rejects.toThrow()
    await until('a word in the log', () => running.stderr.includes('file descriptors run out'), 30_000)
    nofile(running.pid, 1024)
    await until('an answer', async () => (await overNewConnection(running).catch(() => 0)) === 200)
  }, 60_000)
})
