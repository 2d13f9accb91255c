import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { stringify } from 'yaml'
import { dockClip } from '../support/demo-cameras.js'
import { freePort } from '../support/free-port.js'
import { GantryProcess, freely } from '../support/gantry-process.js'
import { addModel, endlessOnnx, redDetector } from '../support/onnx-models.js'
import { alive, descendants } from '../support/processes.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

/** Far under `server.drainSeconds`; an idle machine takes a tenth of it. */
const promptMs = 6_000

type Given = Readonly<{
  pipeline?: Readonly<Record<string, unknown>>
  env?: NodeJS.ProcessEnv
}>

type Case = Readonly<{
  what: string
  given: () => Promise<Given> | Given
  /** Whether the service is where it is to be stopped. */
  reached: (gantry: GantryProcess) => unknown
}>

describe('R20: stop while', () => {
  const cleanUp: (() => Promise<unknown> | void)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  /** A server that takes connections and says nothing. */
  async function silent(): Promise<{ port: number; connections: () => number }> {
    const sockets = new Set<Socket>()
    const server: Server = createServer((socket) => void sockets.add(socket.on('error', () => undefined)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    cleanUp.push(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return { port: (server.address() as AddressInfo).port, connections: () => sockets.size }
  }

  /** What runs first in every Node process whose entry ends like that. @param thread - also in its threads. */
  function preloaded(entry: string, code: string, thread = false): NodeJS.ProcessEnv {
    const file = join(tempDir(), 'first.cjs')
    const place = thread ? '!isMainThread' : 'isMainThread'
    writeFileSync(
      file,
      `const { isMainThread } = require('node:worker_threads')
if (${place} && process.argv[1]?.endsWith('${entry}')) { ${code} }`,
    )
    return { NODE_OPTIONS: `--require ${file}` }
  }

  /** In place of a program: does not end when it is asked to. */
  function stubborn(program: string): NodeJS.ProcessEnv {
    const bin = tempDir()
    const file = join(bin, program)
    writeFileSync(
      file,
      `#!${process.execPath}\nfor (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => undefined)\nsetInterval(() => undefined, 1000)\n`,
    )
    chmodSync(file, 0o755)
    return { PATH: `${bin}:${process.env['PATH'] ?? ''}` }
  }

  const hang = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'
  const camera = (url: string) => ({ cameras: [{ id: 'cam', url }] })
  const process_ = (gantry: GantryProcess, command: string) =>
    descendants(gantry.pid).find((info) => info.command.includes(command))
  const logged = (text: string) => (gantry: GantryProcess) =>
    until(text, () => gantry.stderr.includes(text), 30_000)

  /** With a viewer, for whom the stream process is started. */
  const watched = (reached: Case['reached']) => async (gantry: GantryProcess) => {
    const url = new URL('/api/v1/stream', await gantry.httpUrl())
    const viewer = new WebSocket(url.href.replace('http', 'ws'), 'gantry.v1')
    viewer.on('error', () => undefined)
    cleanUp.push(() => viewer.terminate())
    await reached(gantry)
  }

  let port = 0
  let httpPort = 0
  let connections: () => number = () => 0
  const connected = () => until('a connection', () => connections() > 0, 30_000)
  async function far(): Promise<number> {
    ;({ port, connections } = await silent())
    return port
  }

  const cases: readonly Case[] = [
    {
      // Before Node runs a line of ours, a signal does what it does without us.
      what: 'it is being loaded',
      given: () => ({}),
      reached: (gantry) => until('our first line', () => listens(gantry.pid), 30_000, 1),
    },
    {
      what: 'its first child has just come',
      given: () => ({}),
      reached: (gantry) => until('a child', () => descendants(gantry.pid).length > 0, 30_000, 1),
    },
    {
      what: 'it has just said that it runs',
      given: () => ({ pipeline: { modelServer: { enabled: true } } }),
      reached: (gantry) => gantry.httpUrl(),
    },
    {
      what: 'its engine ends again and again',
      given: () => ({ env: preloaded('processes/engine/main.js', 'process.exit(9)') }),
      reached: logged('"deaths":5'),
    },
    {
      what: 'its engine has ended once and is started again',
      given: () => ({ env: preloaded('processes/engine/main.js', 'process.exit(9)') }),
      reached: logged('"deaths":1'),
    },
    {
      what: 'its engine says nothing',
      given: () => ({ env: preloaded('processes/engine/main.js', hang) }),
      reached: (gantry) => until('an engine', () => process_(gantry, 'processes/engine/main.js'), 30_000),
    },
    {
      what: 'its engine loads a model for ever',
      given: () => ({ env: preloaded('processes/engine/main.js', `${hang}`, true) }),
      reached: (gantry) =>
        until(
          'an engine with a thread that loads',
          () => process_(gantry, 'processes/engine/main.js'),
          30_000,
        ),
    },
    {
      what: 'its stream process ends again and again',
      given: () => ({ env: preloaded('stream/main.js', 'process.exit(9)') }),
      reached: watched(logged('"deaths":3')),
    },
    {
      what: 'its stream process says nothing',
      given: () => ({ env: preloaded('stream/main.js', hang) }),
      reached: watched((gantry) => until('the process', () => process_(gantry, 'stream/main.js'), 30_000)),
    },
    {
      what: 'its model server ends again and again',
      given: () => ({
        pipeline: { modelServer: { enabled: true } },
        env: preloaded('model-server/main.js', 'process.exit(9)'),
      }),
      reached: logged('"deaths":3'),
    },
    {
      what: 'its model server says nothing',
      given: () => ({
        pipeline: { modelServer: { enabled: true } },
        env: preloaded('model-server/main.js', hang),
      }),
      reached: (gantry) => until('the process', () => process_(gantry, 'model-server/main.js'), 30_000),
    },
    {
      what: 'its model server loads a model for ever',
      given: () => {
        const models = tempDir()
        addModel(models, 'red', { onnx: redDetector('uint8-nhwc') })
        mkdirSync(join(models, 'slow/1'), { recursive: true })
        writeFileSync(
          join(models, 'slow/1/model.mjs'),
          'await new Promise((r) => setTimeout(r, 600000))\nexport default () => ({})',
        )
        writeFileSync(
          join(models, 'slow/config.pbtxt'),
          'backend: "js" input { name: "a" data_type: TYPE_FP32 dims: 1 } output { name: "b" data_type: TYPE_FP32 dims: 1 }',
        )
        return {
          pipeline: {
            models: { repository: models, allowJsBackends: true },
            modelServer: { enabled: true, probe: { enabled: false } },
          },
        }
      },
      reached: logged('model server ready'),
    },
    {
      what: 'its model server tries a model',
      given: () => {
        const models = tempDir()
        addModel(models, 'red', { onnx: redDetector('uint8-nhwc') })
        addModel(models, 'endless', { onnx: endlessOnnx() })
        return { pipeline: { models: { repository: models }, modelServer: { enabled: true } } }
      },
      reached: (gantry) => until('a probe', () => process_(gantry, 'endless/1/model.onnx'), 30_000),
    },
    {
      what: 'its cache of answers answers nothing',
      given: async () => ({
        pipeline: {
          models: { cache: { redis: `redis://127.0.0.1:${await far()}` } },
          modelServer: { enabled: true },
        },
      }),
      reached: connected,
    },
    {
      what: 'its port for gRPC is not free yet',
      given: async () => {
        httpPort = await freePort()
        return { pipeline: { modelServer: { enabled: true }, server: { httpPort, grpcPort: await far() } } }
      },
      reached: () =>
        until('HTTP', async () => (await fetch(`http://127.0.0.1:${httpPort}/healthz`)).ok, 30_000, 5),
    },
    {
      what: 'a broker answers nothing',
      given: async () => ({ pipeline: { sinks: { kafka: { brokers: [`127.0.0.1:${await far()}`] } } } }),
      reached: connected,
    },
    {
      what: 'no broker is there',
      given: () => ({ pipeline: { sinks: { kafka: { brokers: ['127.0.0.1:1'] } } } }),
      reached: logged('kafka down'),
    },
    {
      what: 'Redis answers nothing',
      given: async () => ({ pipeline: { cache: { redis: `redis://127.0.0.1:${await far()}` } } }),
      reached: connected,
    },
    {
      what: 'no Redis is there',
      given: () => ({ pipeline: { cache: { redis: 'redis://127.0.0.1:1' } } }),
      reached: logged('result cache down'),
    },
    {
      what: 'an RTSP camera answers nothing',
      given: async () => ({ pipeline: camera(`rtsp://127.0.0.1:${await far()}/a`) }),
      reached: connected,
    },
    {
      what: 'an HTTP camera answers nothing',
      given: async () => ({ pipeline: camera(`http://127.0.0.1:${await far()}/a.mjpg`) }),
      reached: connected,
    },
    {
      what: 'no camera is there, and it waits before it tries again',
      given: () => ({ pipeline: camera('rtsp://127.0.0.1:1/a') }),
      reached: (gantry) => cameraSays(gantry, 'backoff'),
    },
    {
      what: 'ffmpeg does not end when it is asked to',
      given: () => ({
        pipeline: { ...camera(dockClip), mediaRoot: join(dockClip, '..') },
        env: stubborn('ffmpeg'),
      }),
      reached: (gantry) => until('ffmpeg', () => process_(gantry, 'ffmpeg'), 30_000),
    },
    {
      what: 'nvidia-smi says nothing and does not end when it is asked to',
      given: () => ({ env: stubborn('nvidia-smi') }),
      reached: (gantry) => until('nvidia-smi', () => process_(gantry, 'nvidia-smi'), 30_000),
    },
  ]

  async function cameraSays(gantry: GantryProcess, state: string): Promise<unknown> {
    const url = await gantry.httpUrl()
    return until(
      `camera ${state}`,
      async () => {
        const camera = (await (await fetch(`${url}/api/v1/cameras/cam`)).json()) as {
          status: { state: string }
        }
        return camera.status.state === state
      },
      30_000,
    )
  }

  /** Whether the process has our handlers: SIGHUP is the last of them, and Node itself has none for it. */
  function listens(pid: number): boolean {
    const caught = /^SigCgt:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
    return (BigInt(`0x${caught}`) >> BigInt(constants.signals.SIGHUP - 1)) % 2n === 1n
  }

  function launch(given: Given): GantryProcess {
    const gantry = new GantryProcess(['serve', '-c', pipelineFile(given), '--json'], { env: given.env ?? {} })
    cleanUp.push(() => gantry.kill())
    return gantry
  }

  function pipelineFile({ pipeline = {} }: Given): string {
    const dir = tempDir()
    const models = join(dir, 'models')
    mkdirSync(models)
    addModel(models, 'red', { onnx: redDetector('uint8-nhwc') })
    const file = join(dir, 'pipeline.yaml')
    const { server, models: given, ...more } = pipeline as { server?: object; models?: object }
    writeFileSync(
      file,
      stringify({
        apiVersion: 'gantry/v1',
        server: { httpPort: 0, metricsPort: 0, grpcPort: 0, ...server },
        models: { repository: models, ...given },
        ensemble: 'red',
        modelServer: { enabled: false },
        store: { path: join(dir, 'data') },
        log: { format: 'json' },
        ...more,
      }),
    )
    return file
  }

  async function stopped(
    gantry: GantryProcess,
    signal: NodeJS.Signals,
    code: number | string,
  ): Promise<void> {
    const started = descendants(gantry.pid).map(({ pid }) => pid)
    const askedMs = performance.now()
    gantry.child.kill(signal)
    expect(await gantry.ended()).toBe(code)
    expect(performance.now() - askedMs).toBeLessThan(promptMs)
    await until('its children to be gone', () => !started.some(alive), 1_000)
  }

  it.each(cases)('$what', { timeout: 90_000 }, async ({ given, reached }) => {
    const gantry = launch(await given())
    await reached(gantry)
    await stopped(gantry, 'SIGTERM', 0)
  })

  /** A command as a person starts it; its time is over when the test is. */
  function command(args: readonly string[], env: NodeJS.ProcessEnv = {}): GantryProcess {
    const gantry = new GantryProcess(args, { env })
    cleanUp.push(() => gantry.kill())
    return gantry
  }

  it.each(['ffprobe', 'ffmpeg'])(
    'the demo reads its footage, which %s does not',
    { timeout: 60_000 },
    async (program) => {
      const gantry = command(['demo', ...freely(tempDir())], stubborn(program))
      await until(program, () => process_(gantry, program), 30_000)
      await stopped(gantry, 'SIGTERM', 0)
    },
  )

  it(
    'gantry check --probe waits for a camera that answers nothing, with Ctrl-C',
    { timeout: 60_000 },
    async () => {
      const file = pipelineFile({ pipeline: camera(`rtsp://127.0.0.1:${await far()}/a`) })
      const gantry = command(['check', '-c', file, '--probe'])
      await connected()
      await stopped(gantry, 'SIGINT', 'SIGINT')
    },
  )

  it('gantry doctor waits for a program that does not end, with Ctrl-C', { timeout: 60_000 }, async () => {
    const gantry = command(['doctor'], stubborn('nvidia-smi'))
    await until('nvidia-smi', () => process_(gantry, 'nvidia-smi'), 30_000)
    await stopped(gantry, 'SIGINT', 'SIGINT')
  })

  it('gantry models waits for a service that answers nothing, with Ctrl-C', { timeout: 60_000 }, async () => {
    const gantry = command(['models', 'list', '--url', `http://127.0.0.1:${await far()}`])
    await connected()
    await stopped(gantry, 'SIGINT', 'SIGINT')
  })

  it('its engine cannot start, with Ctrl-C', { timeout: 60_000 }, async () => {
    const gantry = launch({ env: preloaded('processes/engine/main.js', 'process.exit(9)') })
    await logged('"deaths":2')(gantry)
    await stopped(gantry, 'SIGINT', 130)
  })
})
