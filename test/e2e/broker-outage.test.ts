import { afterEach, describe, expect, it } from 'vitest'
import type { Readiness } from '../../src/api/gantry.js'
import { detectionsMessageSchema, type DetectionsMessage } from '../../src/messages/detections-message.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { dockClip } from '../support/demo-cameras.js'
import { KafkaBroker, kafkaMissing } from '../support/kafka.js'
import { consumeAll } from '../support/kafka-records.js'
import { TestService, type TestStream } from '../support/service.js'
import { until } from '../support/until.js'

const missing = await kafkaMissing()
/** How often the service is killed; 100 for a long run. */
const kills = Number(process.env['GANTRY_KILLS'] ?? 3)
const password = 'C4nary@w:ü'

describe.skipIf(missing !== undefined)('a service and its broker', () => {
  const cleanUp: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  async function brokerAndCamera() {
    const broker = await KafkaBroker.prepare()
    cleanUp.push(() => broker.stop())
    const rtsp = new LoopingRtspServer()
    await rtsp.start()
    cleanUp.push(() => rtsp.stop())
    const credentials = { user: 'admin', password, scheme: 'digest' } as const
    await rtsp.addStream('/cam', dockClip, { credentials })
    return { broker, url: rtsp.url('/cam', `admin:${encodeURIComponent(password)}`) }
  }

  async function running(url: string, brokers: readonly string[] | undefined, like?: TestService) {
    const pipeline = {
      cameras: [{ id: 'cam', url, sampleFps: 5 }],
      ...(brokers === undefined ? {} : { sinks: { kafka: { brokers } } }),
    }
    const service = await TestService.start({ pipeline, ...(like === undefined ? {} : { like }) })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return service
  }

  const delivered = (service: TestService) =>
    service.metric(/gantry_sink_records_total\{sink="kafka",result="delivered"\}/)

  /** What names a result whatever it was read from. */
  const nameOf = ({ cameraId, seq, capturedAt }: DetectionsMessage) => `${cameraId} ${seq} ${capturedAt}`

  const seenOn = (stream: TestStream) =>
    stream.messages.flatMap((message) => (message.type === 'detections' ? [nameOf(message)] : []))

  async function storedIn(broker: KafkaBroker, atLeast: number) {
    const consumer = await consumeAll(broker.address, 'gantry.detections.v1')
    cleanUp.push(consumer.stop)
    return consumer.atLeast(atLeast)
  }

  /** Ends the service in order. */
  async function drained(service: TestService, stream: TestStream) {
    const closed = stream.closed()
    const askedMs = performance.now()
    service.kill('SIGTERM')
    expect(await closed).toBe(1001)
    expect(await service.exited()).toBe(0)
    expect(performance.now() - askedMs).toBeLessThan(10_000)
  }

  /** How old the next detections are when a viewer gets them. */
  async function nextAgesMs(stream: TestStream, count: number): Promise<number[]> {
    const ages: number[] = []
    while (ages.length < count) {
      for (const { capturedAt } of await stream.detections('cam'))
        ages.push(Date.now() - Date.parse(capturedAt))
    }
    return ages
  }

  /** The state of the sink; the service is ready whatever it is. */
  async function sinkState(service: TestService) {
    const response = await service.fetch('/readyz')
    const { ready, reasons, sinks } = (await response.json()) as Readiness
    return { status: response.status, ready, reasons, sink: sinks[0]?.state }
  }

  /** Asks until the sink is in the state, and holds every answer to a service that is ready. */
  async function sinkIs(service: TestService, sink: 'up' | 'down', withinMs: number) {
    const answers: Awaited<ReturnType<typeof sinkState>>[] = []
    await until(
      `sink ${sink}`,
      async () => {
        answers.push(await sinkState(service))
        return answers.at(-1)?.sink === sink
      },
      withinMs,
    )
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, ready: true, reasons: [] })
  }

  it('R12, R20, S4: starts and detects without it, delivers all when it comes and before it ends, and no password', async () => {
    const { broker, url } = await brokerAndCamera()
    const plain = await running(url, undefined)
    await plain.end()
    const service = await running(url, [broker.address])
    expect(service.startedInMs).toBeLessThan(await plain.boundMs(5_000, service.startedInMs))
    const stream = await service.stream()
    await stream.detections('cam', 5)
    expect(await service.metric(/gantry_sink_up\{sink="kafka"\}/)).toBe(0)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
    await broker.start()
    await until('the backlog', async () => (await delivered(service)) >= 5)
    await stream.detections('cam', 3)
    await drained(service, stream)
    // Nothing but the log: the client library makes Node warn.
    for (const line of service.stderr.trim().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ level: expect.any(String) as string })

    const seen = seenOn(stream)
    const stored = await storedIn(broker, seen.length)
    const names = stored.map(({ value }) => nameOf(detectionsMessageSchema.parse(value)))
    expect(names).toEqual(expect.arrayContaining(seen))
    for (const spelling of [password, encodeURIComponent(password), 'C4nary'])
      expect(JSON.stringify(stored)).not.toContain(spelling)
  }, 240_000)

  it('R13, R20: detects on when it is killed, says so and stays ready, and delivers all once it is back', async () => {
    const { broker, url } = await brokerAndCamera()
    await broker.start()
    const service = await running(url, [broker.address])
    const stream = await service.stream()
    await until('records', async () => (await delivered(service)) >= 5)
    await sinkIs(service, 'up', 5_000)
    const before = await nextAgesMs(stream, 20)
    for (const sink of ['kafka', 'websocket'])
      expect(
        await service.metric(new RegExp(`gantry_publish_seconds_count\\{sink="${sink}",camera="cam"\\}`)),
      ).toBeGreaterThan(0)

    await broker.kill()
    const during = nextAgesMs(stream, 40)
    // A send has 6 s to be acknowledged.
    await sinkIs(service, 'down', 10_000)
    const atKill = await delivered(service)
    expect(await service.metric(/gantry_sink_up\{sink="kafka"\}/)).toBe(0)
    // Nothing waits for the broker: results are as young as before, in the first second without it and after its loss was told.
    const ages = [...(await during), ...(await nextAgesMs(stream, 10))]
    expect(Math.max(...ages)).toBeLessThan(Math.max(1_000, 2 * Math.max(...before)))
    expect(await sinkState(service)).toMatchObject({ status: 200, ready: true, sink: 'down' })
    expect(await delivered(service)).toBe(atKill)

    await broker.start()
    const backMs = performance.now()
    await until('new records', async () => (await delivered(service)) > atKill)
    await sinkIs(service, 'up', 5_000)
    expect(performance.now() - backMs).toBeLessThan(5_000)
    await stream.detections('cam', 5)
    await drained(service, stream)

    expect(stream.messages.filter(({ type }) => type === 'gap')).toEqual([])
    const seen = seenOn(stream)
    const stored = await storedIn(broker, seen.length)
    const names = stored.map(({ value }) => nameOf(detectionsMessageSchema.parse(value)))
    expect(names).toEqual(expect.arrayContaining(seen))
    // What was under way may come twice, as the same record.
    expect(new Set(stored.map(({ headers }) => headers['ce_id'])).size).toBe(new Set(names).size)
    process.stderr.write(
      `R13: oldest result ${Math.max(...before)} ms with the broker, ${Math.max(...ages)} ms without\n`,
    )
  }, 240_000)

  it('R15: loses nothing that it published when it is killed, and starts anew with ids of its own', async () => {
    const { broker, url } = await brokerAndCamera()
    await broker.start()
    let service = await running(url, [broker.address])
    const plainMs = service.startedInMs
    let acknowledged = 0
    const runs: string[][] = []
    for (let kill = 0; kill < kills; kill += 1) {
      const stream = await service.stream()
      await stream.detections('cam', 1 + ((kill * 7) % 10))
      await until('a delivery', async () => (await delivered(service)) > 0)
      acknowledged += await delivered(service)
      service.kill('SIGKILL')
      await service.exited()
      runs.push(seenOn(stream))
      service = await running(url, [broker.address], service)
      const bound = await service.boundMs(Math.max(5_000, 1.5 * plainMs), service.startedInMs)
      expect(service.startedInMs).toBeLessThanOrEqual(bound)
    }
    await service.end()
    const stored = await storedIn(broker, Math.max(acknowledged, new Set(runs.flat()).size))
    // A run that was killed before its place was committed sends the last records once more: what
    // all runs had acknowledged are messages, and each result is there by one id.
    expect(stored.length).toBeGreaterThanOrEqual(acknowledged)
    const names = new Set(stored.map(({ value }) => nameOf(detectionsMessageSchema.parse(value))))
    expect(new Set(stored.map(({ headers }) => headers['ce_id'])).size).toBe(names.size)
    // What a viewer saw was stored before: the next run delivers it.
    for (const seen of runs) expect(seen.filter((name) => !names.has(name))).toEqual([])
  }, 600_000)
})
