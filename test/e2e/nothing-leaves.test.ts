import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stringify } from 'yaml'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { mainScript } from '../support/gantry-process.js'
import { GrpcClient } from '../support/grpc-client.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { reached, straceWorks, traced } from '../support/system-calls.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

/** Folders of a user who has nothing yet, and his environment: libraries keep still on a build server, which says `CI`. */
function newUser() {
  const dir = tempDir()
  const at = (name: string) => {
    mkdirSync(join(dir, name))
    return join(dir, name)
  }
  const [home, temp, models] = [at('home'), at('temp'), at('models')]
  const silenced = Object.keys(process.env).filter((name) =>
    /^(CI|ORT_.*|XDG_.*|HOME|VITEST.*|NODE_.*)$/.test(name),
  )
  const env: NodeJS.ProcessEnv = {
    ...Object.fromEntries(silenced.map((name) => [name, undefined])),
    HOME: home,
    TMPDIR: temp,
  }
  addModel(models, 'red', { onnx: redDetector('uint8-nhwc') })
  return { dir, home, temp, models, env, trace: join(dir, 'trace') }
}

type User = ReturnType<typeof newUser>

/** What was written where nobody had said that it may be. */
function strayFiles({ dir, temp, trace }: User, allowed: readonly string[]): string[] {
  const mine = [join(temp, 'gantry-'), ...allowed]
  const stray = reached(trace).written.filter((path) => !mine.some((start) => path.startsWith(start)))
  return stray.map((path) => path.replace(dir, ''))
}

describe.skipIf(!straceWorks)(
  'S10: nothing leaves this machine and nothing is written beside the configured folders',
  () => {
    it('S10: by a service with cameras, models, viewers and clients', async () => {
      const user = newUser()
      const rtsp = await rtspCameras(1)
      onTestFinished(() => rtsp.stop())
      const service = await TestService.start({
        pipeline: {
          models: { repository: user.models },
          ensemble: 'red',
          modelServer: { enabled: true, nice: 0 },
          mediaRoot: join(import.meta.dirname, '../../pipelines/demo/clips'),
          cameras: [
            ...cameraSettings(rtsp, 1, 5),
            { id: 'pushed', url: 'push:' },
            { id: 'film', url: 'dock.mp4' },
          ],
        },
        env: user.env,
        under: traced(user.trace),
      })
      onTestFinished(() => service[Symbol.asyncDispose]())
      await service.cameraIs('cam-1', 'live', 60_000)
      const modelsReady = async () => (await service.fetch('/v2/health/ready')).status === 200
      await until('models ready', modelsReady, 60_000)

      const snapshot = await service.fetch('/api/v1/cameras/cam-1/snapshot.jpg?overlay=1')
      expect(snapshot.status).toBe(200)
      const pushed = await service.fetch('/api/v1/cameras/pushed/frames', {
        method: 'POST',
        headers: { 'content-type': 'image/jpeg' },
        body: await snapshot.arrayBuffer(),
      })
      expect(pushed.status).toBe(202)
      expect((await service.fetch('/')).status).toBe(200)
      await service.send('POST', '/api/v1/cameras', { id: 'kept', url: 'push:', persist: true })
      const answered = await service.send<{ outputs: unknown[] }>('POST', '/v2/models/red/infer', {
        inputs: [
          { name: 'images', datatype: 'UINT8', shape: [1, 64, 64, 3], data: Array(64 * 64 * 3).fill(9) },
        ],
      })
      expect(answered.outputs).toHaveLength(1)
      const { modelServer } = await service.ready()
      const grpc = new GrpcClient(modelServer?.grpcPort ?? 0)
      onTestFinished(() => grpc.close())
      expect(await grpc.call('ModelReady', { name: 'red' })).toEqual({ ready: true })
      const stream = await service.stream({ frames: true })
      await stream.detections('cam-1', 50)
      service.kill('SIGTERM')
      expect(await service.exited()).toBe(0)

      expect(reached(user.trace).network).toEqual([])
      expect(strayFiles(user, [join(service.dir, 'data')])).toEqual([])
      expect([readdirSync(user.home), readdirSync(user.temp)]).toEqual([[], []])
      // Nor is a list read that another user of the library keeps, and would write when it is old.
      expect(readFileSync(user.trace, 'utf8').includes('cache/fontconfig')).toBe(false)
      // It did look.
      expect(reached(user.trace).written).toContain(join(service.dir, 'data/model-probes.json.new'))
    }, 180_000)

    it('S10: and without a home to write to there is nothing but JSON in the log', async () => {
      const { env, models } = newUser()
      const service = await TestService.start({
        pipeline: { models: { repository: models }, ensemble: 'red', log: { level: 'info', format: 'json' } },
        env: { ...env, HOME: '/dev/null' },
      })
      onTestFinished(() => service[Symbol.asyncDispose]())
      await service.end()
      const lines = service.stderr.trim().split('\n')
      expect(lines.length).toBeGreaterThan(0)
      for (const line of lines) expect(JSON.parse(line)).toMatchObject({ level: 'info' })
    }, 60_000)

    it.each([
      ['doctor', []],
      ['check', ['-c', 'plant.yaml']],
      ['models', ['inspect', 'red', '-r', 'models']],
      ['models', ['list', '-r', 'models']],
      ['models', ['split', 'red', '-n', '2', '-r', 'models']],
    ])(
      'S10: by gantry %s %j',
      async (command, args) => {
        const user = newUser()
        const pipeline = {
          apiVersion: 'gantry/v1',
          models: { repository: './models' },
          ensemble: 'red',
          cameras: [],
        }
        writeFileSync(join(user.dir, 'plant.yaml'), stringify(pipeline))
        const [strace = '', ...flags] = traced(user.trace)
        const child = spawn(strace, [...flags, process.execPath, mainScript, command, ...args], {
          cwd: user.dir,
          stdio: 'ignore',
          env: { ...process.env, ...user.env },
        })
        await once(child, 'exit')
        expect(reached(user.trace).network).toEqual([])
        expect(strayFiles(user, command === 'models' ? [user.models] : [])).toEqual([])
        expect(readdirSync(user.home)).toEqual([])
      },
      120_000,
    )
  },
)
