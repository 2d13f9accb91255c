import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterEach, describe, expect, it } from 'vitest'
import { GatedModel } from '../support/gated-model.js'
import { GrpcClient, type ServiceError } from '../support/grpc-client.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

describe('a service that is asked to stop with requests in it', () => {
  const cleanUp: (() => Promise<unknown> | void)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  async function running(runMs?: number, server: Record<string, unknown> = {}) {
    const dir = mkdtempSync(join(tmpdir(), 'gantry-drain-'))
    cleanUp.push(() => rmSync(dir, { recursive: true, force: true }))
    const [own, clients] = [join(dir, 'own'), join(dir, 'clients')]
    for (const folder of [own, clients]) mkdirSync(folder)
    addModel(own, 'red', { onnx: redDetector('uint8-nhwc') })
    const model = new GatedModel(clients, runMs)
    const service = await TestService.start({
      pipeline: {
        models: { repository: [own, clients], allowJsBackends: true },
        ensemble: 'red',
        engines: 0,
        modelServer: { enabled: true },
      },
      server,
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    await until('models ready', async () => (await fetch(`${service.url}/v2/health/ready`)).ok, 60_000)
    const port = await until('gRPC', async () => (await service.ready()).modelServer?.grpcPort, 30_000)
    const grpc = new GrpcClient(port)
    cleanUp.push(() => grpc.close())
    return { service, model, grpc, port }
  }

  const infer = (service: TestService, value: number) => post(service, GatedModel.json(value))

  /** On a connection of its own, or of `agent`. */
  function post(service: TestService, body: string, agent?: Agent) {
    return new Promise<Readonly<{ status: number; headers: Record<string, unknown>; text: string }>>(
      (resolve, reject) => {
        const asked = request(`${service.url}/v2/models/gated/infer`, {
          method: 'POST',
          agent: agent ?? false,
        })
        asked.on('error', reject)
        asked.on('response', (answer) => {
          let text = ''
          answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
          answer
            .on('error', reject)
            .on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }))
        })
        asked.setHeader('content-type', 'application/json')
        asked.end(body)
      },
    )
  }

  const draining = (service: TestService) =>
    until('not ready', async () => (await service.fetch('/readyz')).status === 503, 5_000, 5)

  it('R20: answers four requests by HTTP and four by gRPC of 2 s each on one instance, and ends with 0', async () => {
    const { service, model, grpc } = await running(2_000)
    const asked = [1, 2, 3, 4].flatMap((value) => [
      infer(service, value).then(({ status }) => status),
      grpc.call('ModelInfer', GatedModel.message(10 + value)).then(
        () => 'OK',
        (error: ServiceError) => error.details,
      ),
    ])
    await until('a run', () => model.begun > 0)
    // All of them are in the queue by now: the loop that began the first has read the others.
    await until('the others', async () => (await pendingCount(service)) === 8)
    service.kill('SIGTERM')
    expect(await Promise.all(asked)).toEqual(Array.from({ length: 4 }, () => [200, 'OK']).flat())
    expect(await service.exited()).toBe(0)
  }, 90_000)

  async function pendingCount(service: TestService): Promise<number> {
    const text = await service.metrics()
    const queued = /^nv_inference_pending_request_count\{model="gated"[^}]*\} (\d+)$/m.exec(text)?.[1]
    return Number(queued ?? 0) + 1
  }

  it('R20: tells new requests so while it answers what it has, and lives on until then', async () => {
    const { service, model, grpc, port } = await running()
    const kept = new Agent({ keepAlive: true, maxSockets: 1 })
    cleanUp.push(() => kept.destroy())
    const first = infer(service, 1)
    const watch = grpc.stream('grpc.health.v1.Health/Watch')
    const told: unknown[] = []
    watch.on('data', ({ status }: { status: unknown }) => told.push(status)).on('error', () => undefined)
    watch.end({})
    await until('a run', () => model.begun === 1)
    const askedMs = performance.now()
    service.kill('SIGTERM')
    await draining(service)
    expect(performance.now() - askedMs).toBeLessThan(1_000)

    // By HTTP: on a new connection, on one that the service itself serves, and on one that it gave to the model server.
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
    expect((await fetch(`${service.url}/v2/health/live`)).status).toBe(200)
    expect((await fetch(`${service.url}/v2/health/ready`)).ok).toBe(false)
    expect((await fetch(`${service.url}/v2/models/gated/ready`)).ok).toBe(false)
    const refused = await post(service, GatedModel.json(2), kept)
    expect(refused).toMatchObject({ status: 503, headers: { connection: 'close', 'retry-after': '5' } })
    expect(JSON.parse(refused.text)).toMatchObject({ error: expect.any(String) as string })
    const added = await service.fetch('/api/v1/cameras', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'a', url: 'rtsp://h/' }),
    })
    expect([added.status, added.headers.get('retry-after')]).toEqual([503, '5'])
    await expect(service.stream()).rejects.toThrow('503')

    // By gRPC: on a new connection and on the old one.
    const fresh = new GrpcClient(port)
    cleanUp.push(() => fresh.close())
    for (const client of [fresh, grpc]) {
      expect(await client.call('ServerLive', {})).toMatchObject({ live: true })
      expect(await client.call('ServerReady', {})).toMatchObject({ ready: false })
      expect(await client.call('grpc.health.v1.Health/Check', {})).toMatchObject({ status: 'NOT_SERVING' })
      await expect(client.call('ModelInfer', GatedModel.message(3))).rejects.toMatchObject({
        code: 14,
        details: 'the server is stopping',
      })
    }
    expect(told.at(-1)).toBe('NOT_SERVING')

    model.open()
    expect((await first).status).toBe(200)
    const openedMs = performance.now()
    expect(await service.exited()).toBe(0)
    expect(performance.now() - openedMs).toBeLessThan(3_000)
    expect(model.begun).toBe(1)
  }, 90_000)

  it('R20: answers what a stream has sent, refuses what it sends later, and ends it with its reason', async () => {
    const { service, model, grpc } = await running()
    const closing = grpc.stream('ModelStreamInfer')
    const open = grpc.stream('ModelStreamInfer')
    const idle = grpc.stream('ModelStreamInfer')
    const [ofClosing, ofOpen, ofIdle] = [closing, open, idle].map((stream) => collected(stream))
    idle.write(GatedModel.message(1))
    await until('a run', () => model.begun === 1)
    for (const value of [2, 3]) open.write(GatedModel.message(value))
    for (const value of [4, 5]) closing.write(GatedModel.message(value))
    closing.end()
    await until('the others', async () => (await pendingCount(service)) === 5)
    service.kill('SIGTERM')
    await draining(service)
    open.write(GatedModel.message(6))
    await until('the message on its way', () => open.writableLength === 0)
    model.open()
    expect(await ofIdle?.ended).toEqual({ code: 14, details: 'the server is stopping' })
    expect(await ofOpen?.ended).toEqual({ code: 14, details: 'the server is stopping' })
    expect(await ofClosing?.ended).toEqual({ code: 0, details: expect.any(String) as string })
    expect(ofIdle?.answers).toEqual(['1'])
    expect(ofOpen?.answers.slice(0, 2)).toEqual(['2', '3'])
    expect(ofOpen?.answers.slice(2)).toEqual(['the server is stopping'])
    expect(ofClosing?.answers).toEqual(['4', '5'])
    expect(await service.exited()).toBe(0)
  }, 90_000)

  function collected(stream: ReturnType<GrpcClient['stream']>) {
    const answers: string[] = []
    stream.on('data', (answer: { error_message?: string; infer_response?: { id: string } }) =>
      answers.push(
        answer.error_message === undefined || answer.error_message === ''
          ? (answer.infer_response?.id ?? '')
          : answer.error_message,
      ),
    )
    stream.on('error', () => undefined)
    const ended = new Promise<Readonly<{ code: number; details: string }>>((resolve) =>
      stream.on('status', ({ code, details }: { code: number; details: string }) =>
        resolve({ code, details }),
      ),
    )
    return { answers, ended }
  }

  it('R20: holds to server.drainSeconds: what is not answered by then is told so, and it ends with 0', async () => {
    const { service, model, grpc } = await running(undefined, { drainSeconds: 1 })
    const byHttp = infer(service, 1).then(
      ({ status }) => status,
      () => 'cut',
    )
    await until('a run', () => model.begun === 1)
    const queued = grpc.call('ModelInfer', GatedModel.message(2)).then(
      () => 0,
      ({ code }: ServiceError) => code,
    )
    await until('the other', async () => (await pendingCount(service)) === 2)
    const askedMs = performance.now()
    service.kill('SIGTERM')
    expect(await service.exited()).toBe(0)
    const tookMs = performance.now() - askedMs
    expect(tookMs).toBeGreaterThan(900)
    expect(tookMs).toBeLessThan(6_000)
    expect(await queued).toBe(14)
    expect([503, 'cut']).toContain(await byHttp)
  }, 90_000)

  it('R20: ends at once when there is nothing to wait for, whatever is connected', async () => {
    const { service, grpc } = await running()
    const kept = new Agent({ keepAlive: true })
    cleanUp.push(() => kept.destroy())
    await post(service, '{}', kept)
    const stream = grpc.stream('ModelStreamInfer')
    const { ended } = collected(stream)
    const viewer = await service.stream()
    const closed = viewer.closed()
    const askedMs = performance.now()
    service.kill('SIGTERM')
    expect(await service.exited()).toBe(0)
    expect(performance.now() - askedMs).toBeLessThan(3_000)
    expect(await closed).toBe(1001)
    expect((await ended).code).toBe(14)
  }, 90_000)

  it.each([
    ['answers nothing', true],
    ['is away', false],
  ])(
    'R20: with a broker that %s it ends in time, and says how many records wait for the next start',
    async (_, there) => {
      const sockets = new Set<Socket>()
      const broker = createServer((socket) => void sockets.add(socket.on('error', () => undefined)))
      broker.listen(0, '127.0.0.1')
      await once(broker, 'listening')
      const { port } = broker.address() as AddressInfo
      cleanUp.push(() => {
        for (const socket of sockets) socket.destroy()
        broker.close()
      })
      if (!there) broker.close()
      const dir = mkdtempSync(join(tmpdir(), 'gantry-drain-'))
      cleanUp.push(() => rmSync(dir, { recursive: true, force: true }))
      addModel(dir, 'red', { onnx: redDetector('uint8-nhwc') })
      const service = await TestService.start({
        pipeline: {
          models: { repository: dir },
          ensemble: 'red',
          cameras: [{ id: 'pushed', url: 'push:' }],
          sinks: { kafka: { brokers: [`127.0.0.1:${port}`] } },
        },
        server: { drainSeconds: 1 },
      })
      cleanUp.push(() => service[Symbol.asyncDispose]())
      const image = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
        .png()
        .toBuffer()
      // The camera is its engine's a moment after that is ready.
      await until('a picture taken', async () => {
        const headers = { 'content-type': 'image/png' }
        const body = new Uint8Array(image)
        return (await service.fetch('/api/v1/cameras/pushed/frames', { method: 'POST', headers, body })).ok
      })
      const askedMs = performance.now()
      service.kill('SIGTERM')
      expect(await service.exited()).toBe(0)
      expect(performance.now() - askedMs).toBeLessThan(6_000)
      const told = service.stderr
        .split('\n')
        .find((line) => line.includes('records that the next start delivers are stored'))
      const { sink, records } = JSON.parse(told ?? '{}') as { sink?: string; records?: number }
      expect(sink).toBe('kafka')
      // The result, and the time of the camera.
      expect(records).toBeGreaterThanOrEqual(2)
    },
    90_000,
  )
})
