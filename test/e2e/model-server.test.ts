import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { run } from '../../src/cli/program.js'
import type { IndexEntry } from '../../src/serving/model-server.js'
import { fakeTerminal } from '../support/fake-terminal.js'
import { buildOnnx } from '../support/onnx-builder.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { alive, descendants } from '../support/processes.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

describe('the model server of a running service', () => {
  const cleanUp: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  /** A repository with the model that cameras use and a model of its own. */
  function repository(): string {
    const dir = mkdtempSync(join(tmpdir(), 'gantry-models-'))
    cleanUp.push(() => rmSync(dir, { recursive: true, force: true }))
    addModel(dir, 'red', { onnx: redDetector('uint8-nhwc') })
    return dir
  }

  async function running(
    models: Record<string, unknown> = {},
    more: Record<string, unknown> = {},
    env: NodeJS.ProcessEnv = {},
  ) {
    const service = await TestService.start({
      pipeline: {
        models: { repository: repository(), ...models },
        ensemble: 'red',
        modelServer: { enabled: true },
        ...more,
      },
      env,
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return service
  }

  const modelsReady = (service: TestService) =>
    until('models ready', async () => (await fetch(`${service.url}/v2/health/ready`)).status === 200, 30_000)

  async function connected(service: TestService): Promise<Socket> {
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    cleanUp.push(() => void socket.destroy())
    socket.on('error', () => undefined).resume()
    await once(socket, 'connect')
    return socket
  }

  function modelServerPid(service: TestService): number {
    const pid = descendants(service.pid).find(({ command }) => command.includes('model-server/main.js'))?.pid
    if (pid === undefined) throw new Error('no model server process')
    return pid
  }

  const infer = (service: TestService, init: RequestInit = {}) =>
    fetch(`${service.url}/v2/models/red/infer`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        inputs: [
          { name: 'images', datatype: 'UINT8', shape: [1, 64, 64, 3], data: Array(64 * 64 * 3).fill(255) },
        ],
      }),
      ...init,
    })

  it('serves the models of the repository beside the cameras, through the port of the service', async () => {
    const service = await running()
    await modelsReady(service)
    const index = await service.json<IndexEntry[]>('/v2/repository/index', { method: 'POST' })
    expect(index).toEqual([{ name: 'red', version: '1', state: 'READY' }])
    const answer = await infer(service)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ model_name: 'red', model_version: '1' })
    const health = await until('the health of the models', async () => {
      const { modelServer } = await service.ready()
      return modelServer?.models.ready === 1 ? modelServer : undefined
    })
    expect(health).toMatchObject({ state: 'ready', models: { total: 1, ready: 1 } })
    expect(await service.metric(/nv_inference_request_success\{model="red",version="1"\}/)).toBe(1)
  })

  it('counts what the models did on the /metrics of the service', async () => {
    const service = await running()
    await modelsReady(service)
    expect((await infer(service)).status).toBe(200)
    expect((await infer(service, { body: '{"inputs":[]}' })).status).toBe(400)
    const text = await (await fetch(`${service.url}/metrics`)).text()
    const lines = text.split('\n')
    expect(lines).toContain('nv_inference_request_success{model="red",version="1"} 1')
    expect(lines).toContain('nv_inference_request_failure{model="red",reason="OTHER",version="1"} 1')
    expect(lines).toContain('gantry_model_request_seconds_count{model="red",version="1"} 1')
    const types = lines.filter((line) => line.startsWith('# TYPE '))
    expect(new Set(types).size).toBe(types.length)
  })

  it('is started again after it was killed, while cameras and page go on', async () => {
    const service = await running()
    await modelsReady(service)
    const killed = modelServerPid(service)
    process.kill(killed, 'SIGKILL')
    await until('model server away', async () => (await fetch(`${service.url}/v2`)).status === 503, 5_000, 5)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
    await modelsReady(service)
    expect((await infer(service)).status).toBe(200)
    expect(modelServerPid(service)).not.toBe(killed)
    expect(await service.metric(/gantry_model_server_restarts_total/)).toBe(1)
  })

  it('leaves no client waiting whose connection was on its way to it when it was killed', async () => {
    const service = await running()
    await modelsReady(service)
    const pid = modelServerPid(service)
    process.kill(pid, 'SIGSTOP')
    const clients = await Promise.all([1, 2, 3].map(() => connected(service)))
    for (const client of clients) client.write('GET /v2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
    // Gives the service time to read them. One that it reads only after the kill is answered instead of cut.
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
    process.kill(pid, 'SIGKILL')
    const cutOrAnswered = ({ closed, bytesRead }: Socket) => closed || bytesRead > 0
    await until('all cut or answered', () => clients.every(cutOrAnswered), 5_000)
    await modelsReady(service)
  })

  it('leaves no process behind when the service is killed', async () => {
    const service = await running()
    await modelsReady(service)
    const pids = descendants(service.pid).map(({ pid }) => pid)
    service.kill('SIGKILL')
    await service.exited()
    await until('no orphan', () => pids.every((pid) => !alive(pid)), 2_000)
  })

  it('loads and unloads by request and from the command line, in control mode explicit', async () => {
    const service = await running({ control: 'explicit' })
    await modelsReady(service)
    const gantry = async (...args: string[]) => {
      const terminal = fakeTerminal()
      const code = await run(['models', ...args, '--url', service.url], terminal)
      return { code, out: terminal.stdout(), err: terminal.stderr() }
    }
    expect((await infer(service)).status).toBe(400)
    expect((await gantry('list')).out).toMatch(/red +not loaded/)
    expect(await gantry('load', 'red')).toMatchObject({
      code: 0,
      out: expect.stringContaining('READY') as string,
    })
    expect((await infer(service)).status).toBe(200)
    expect(await gantry('load', 'blue')).toMatchObject({
      code: 1,
      err: expect.stringContaining("failed to load 'blue', failed to poll from model repository") as string,
    })
    const listed = JSON.parse((await gantry('list', '--json')).out) as { models: IndexEntry[] }
    expect(listed.models).toMatchObject([{ name: 'red', version: '1', state: 'READY' }])
    expect((await gantry('unload', 'red')).code).toBe(0)
    expect((await gantry('unload', 'blue')).code).toBe(2)
    await until('red unloaded', async () => (await infer(service)).status === 404)
  })

  it('S9: refuses a model that asks for 12 GiB, with the reason, and goes on', async () => {
    const service = await running(
      { control: 'explicit', load: ['red'] },
      { modelServer: { enabled: true, probe: { memoryBytes: 1024 ** 3 } } },
    )
    await modelsReady(service)
    const pid = modelServerPid(service)
    const hostile = buildOnnx({
      inputs: [],
      outputs: [{ name: 'out', type: 'float32', shape: ['n'] }],
      nodes: [{ op: 'ConstantOfShape', inputs: ['shape'], outputs: ['out'] }],
      constants: [{ name: 'shape', shape: [1], data: BigInt64Array.of(3n * 1024n ** 3n) }],
    })
    const answer = await fetch(`${service.url}/v2/repository/models/hostile/load`, {
      method: 'POST',
      body: JSON.stringify({
        parameters: { config: '{}', 'file:1/model.onnx': Buffer.from(hostile).toString('base64') },
      }),
    })
    expect(answer.status).toBe(400)
    expect(await answer.text()).toMatch(/memory/)
    expect((await infer(service)).status).toBe(200)
    expect(modelServerPid(service)).toBe(pid)
  })

  it('serves what clients had sent again after it was killed, once; the service removes it at its next start', async () => {
    const temporary = mkdtempSync(join(tmpdir(), 'gantry-tmp-'))
    cleanUp.push(() => rmSync(temporary, { recursive: true, force: true }))
    const service = await running({ control: 'explicit' }, {}, { TMPDIR: temporary })
    await modelsReady(service)
    const sent = () =>
      readdirSync(temporary, { recursive: true }).filter((path) => String(path).endsWith('model.onnx'))
    const send = async (): Promise<void> => {
      const file = Buffer.from(redDetector('uint8-nhwc')).toString('base64')
      const body = JSON.stringify({ parameters: { config: '{}', 'file:1/model.onnx': file } })
      const load = `${service.url}/v2/repository/models/sent/load`
      expect((await fetch(load, { method: 'POST', body })).status).toBe(200)
      await until('what was sent, alone', () => sent().length === 1)
    }
    await send()
    process.kill(modelServerPid(service), 'SIGKILL')
    await until('model server away', async () => (await fetch(`${service.url}/v2`)).status === 503, 5_000, 5)
    await modelsReady(service)
    expect((await fetch(`${service.url}/v2/models/sent/ready`)).status).toBe(200)
    expect(sent()).toHaveLength(1)
    await send()
    service.kill('SIGKILL')
    await service.exited()
    const next = await TestService.start({ ...service.options, like: service })
    cleanUp.push(() => next[Symbol.asyncDispose]())
    expect(sent()).toEqual([])
  }, 120_000)

  it('R11: loses none of 1,000 requests while a model is written in pieces, cut short and replaced', async () => {
    const service = await running({ control: 'poll', pollSeconds: 0.1 })
    await modelsReady(service)
    const { repository } = service.options.pipeline?.['models'] as { repository: string }
    const path = join(repository, 'red/1/model.onnx')
    const statuses: number[] = []
    let writing = true
    const asking = (async () => {
      while (writing || statuses.length < 1_000)
        statuses.push(...(await Promise.all([infer(service), infer(service)])).map(({ status }) => status))
    })()
    /** Writes, and waits for one more of these lines in the log of the service. */
    const writeAndRead = async (to: string, bytes: Uint8Array | string, line: string) => {
      const lines = () => service.stderr.split(`"${line}"`).length
      const before = lines()
      writeFileSync(to, bytes)
      await until(line, () => lines() > before, 30_000)
    }
    const incomplete = 'changed model is not complete, what serves is kept'
    const tenths = Array.from({ length: 9 }, (_, index) => (index + 1) / 10)
    for (const confidence of [1, undefined]) {
      const whole = redDetector('uint8-nhwc', confidence)
      for (const share of tenths)
        await writeAndRead(path, whole.subarray(0, Math.floor(whole.length * share)), incomplete)
      await writeAndRead(path, whole, 'model loaded')
    }
    const config = join(repository, 'red/config.pbtxt')
    const wrongShape = 'input { name: "images" data_type: TYPE_UINT8 dims: [ 32, 32, 3 ] }'
    const rejected = 'model cannot be loaded'
    await writeAndRead(config, `max_batch_size: 4 ${wrongShape}`, rejected)
    // Tried again when its files change, and not before.
    const asked = statuses.length
    await until('many looks later', () => statuses.length > asked + 100)
    expect(service.stderr.split(`"${rejected}"`)).toHaveLength(2)
    rmSync(config)
    await writeAndRead(path, redDetector('uint8-nhwc', 1), 'model loaded')
    writing = false
    await asking
    expect(statuses.length).toBeGreaterThanOrEqual(1_000)
    expect(statuses.filter((status) => status !== 200)).toEqual([])
  }, 120_000)

  it('R11: killed in the middle of a swap, it says what is wrong with the file and serves once that is whole', async () => {
    const service = await running({ control: 'poll', pollSeconds: 0.1 })
    await modelsReady(service)
    const { repository } = service.options.pipeline?.['models'] as { repository: string }
    const whole = redDetector('uint8-nhwc', 1)
    writeFileSync(join(repository, 'red/1/model.onnx'), whole.subarray(0, whole.length / 2))
    process.kill(modelServerPid(service), 'SIGKILL')
    const state = await until(
      'the reason',
      async () => {
        const answer = await fetch(`${service.url}/v2/repository/index`, { method: 'POST' })
        const [red] = answer.ok ? ((await answer.json()) as IndexEntry[]) : []
        return red?.state === 'UNAVAILABLE' ? red : undefined
      },
      30_000,
    )
    expect(state.reason).toMatch(/ONNX/)
    writeFileSync(join(repository, 'red/1/model.onnx'), whole)
    await modelsReady(service)
    expect((await infer(service)).status).toBe(200)
  }, 90_000)
})
