import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Kafka, logLevel } from 'kafkajs'
import sharp from 'sharp'
import { expect, it, onTestFinished } from 'vitest'
import type { Readiness } from '../../src/api/gantry.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { freePort } from '../support/free-port.js'
import { kafkaMissing, sharedKafka } from '../support/kafka.js'
import { consumeAll } from '../support/kafka-records.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { WebhookReceiver } from '../support/sinks.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const preload = fileURLToPath(new URL('../support/stepping-clock.mjs', import.meta.url))
const hourMs = 3_600_000
const cameras = ['cam-1', 'cam-2']

it('R6: an hour ahead and two hours back, in a zone with summer time, reconnect nothing and repeat nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-clock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const clock = join(folder, 'offset')
  writeFileSync(clock, '0')
  const rtsp = await rtspCameras(cameras.length)
  onTestFinished(() => rtsp.stop())
  const service = await TestService.start({
    pipeline: {
      cameras: cameras.map((id, index) => ({ id, url: rtsp.url(`/cam${index + 1}`), sampleFps: 4 })),
    },
    env: { TZ: 'Europe/Berlin', NODE_OPTIONS: `--import=${preload}`, GANTRY_TEST_CLOCK: clock },
  })
  onTestFinished(() => service[Symbol.asyncDispose]())
  const stream = await service.stream()
  onTestFinished(() => stream.close())
  const wrongByMs = ({ capturedAt }: { capturedAt: string }) => Date.parse(capturedAt) - Date.now()

  const [before] = await stream.detections('cam-1', 3)
  expect(Math.abs(wrongByMs(before!))).toBeLessThan(60_000)
  writeFileSync(clock, String(hourMs))
  await stream.next((message) => message.type === 'detections' && wrongByMs(message) > hourMs / 2)
  await stream.detections('cam-1', 8)
  writeFileSync(clock, String(-hourMs))
  await stream.detections('cam-1', 12)

  for (const id of cameras) {
    const { status } = await service.camera(id)
    expect(status).toMatchObject({ state: 'live', attempts: 1 })
    const told = stream.messages.flatMap((message) =>
      message.type === 'detections' && message.cameraId === id ? [message] : [],
    )
    const seqs = told.map(({ seq }) => seq)
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b))
    const times = told.map(({ capturedAt }) => capturedAt)
    expect(times).toEqual([...times].sort())
    for (const time of times) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  }
  const ready = await service.ready(1_000)
  expect(ready.ready).toBe(true)
  expect(await service.metric(/gantry_engine_restarts_total\{engine="0"\}/)).toBe(0)
  for (const line of service.stderr.trim().split('\n'))
    expect(JSON.parse(line)).toMatchObject({ time: expect.stringMatching(/Z$/) as string })
}, 120_000)

it.skipIf((await kafkaMissing()) !== undefined)(
  'R31: two hours ahead, records wait for the clock, /readyz says so, and all arrive in order once it is right',
  async () => {
    const folder = tempDir()
    const clock = join(folder, 'offset')
    writeFileSync(clock, String(2 * hourMs))
    addModel(folder, 'red', { onnx: redDetector('uint8-nhwc') })
    const broker = await sharedKafka()
    onTestFinished(() => broker.release())
    // A topic of somebody else, with what Kafka has where nothing is said.
    const topic = `test.clock.${process.pid}`
    const admin = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    await admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true })
    await admin.disconnect()
    const service = await TestService.start({
      pipeline: {
        models: { repository: folder },
        ensemble: 'red',
        cameras: cameras.map((id) => ({ id, url: 'push:' })),
        sinks: { kafka: { brokers: [broker.address], topics: { detections: topic } } },
      },
      env: { NODE_OPTIONS: `--import=${preload}`, GANTRY_TEST_CLOCK: clock },
    })
    onTestFinished(() => service[Symbol.asyncDispose]())
    const image = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
      .png()
      .toBuffer()
    const push = (id: string) =>
      until('a picture taken', async () => {
        const headers = { 'content-type': 'image/png' }
        const body = new Uint8Array(image)
        return (await service.fetch(`/api/v1/cameras/${id}/frames`, { method: 'POST', headers, body })).ok
      })
    const sinkIs = (wanted: (sink: Readiness['sinks'][number]) => boolean) =>
      until('the sink', async () => {
        const { ready, sinks } = await service.json<Readiness>('/readyz')
        expect(ready).toBe(true)
        return sinks[0] !== undefined && wanted(sinks[0])
      })
    await push('cam-1')
    await sinkIs(({ reason, queued }) => reason.includes('clock of this machine differs') && queued === 1)
    await push('cam-1')
    await push('cam-2')
    await sinkIs(({ state, queued }) => state === 'down' && queued === 3)
    writeFileSync(clock, '0')
    await push('cam-1')
    await sinkIs(({ state, delivered, dropped }) => state === 'up' && delivered === 4 && dropped === 0)
    const consumer = await consumeAll(broker.address, topic)
    onTestFinished(consumer.stop)
    const records = (await consumer.atLeast(4)).map(({ key, headers }) => [
      key,
      Date.parse(headers['ce_time'] ?? ''),
    ])
    const timesOf = (id: string) => records.flatMap(([key, time]) => (key === id ? [Number(time)] : []))
    expect(timesOf('cam-1')).toEqual(timesOf('cam-1').sort((a, b) => a - b))
    // When it was captured by the clock of then.
    expect(timesOf('cam-1')[0]).toBeGreaterThan(Date.now() + hourMs)
    expect(timesOf('cam-2')).toHaveLength(1)
  },
  90_000,
)

it('R145: a year ahead at the start, then at 1970 and right again, what was not delivered is delivered, without a gap', async () => {
  const folder = tempDir()
  const clock = join(folder, 'offset')
  writeFileSync(clock, '0')
  const port = await freePort()
  const options = {
    pipeline: {
      cameras: [{ id: 'cam-1', url: 'push:' }],
      store: { maxAge: '1d' },
      sinks: { webhook: { url: `http://127.0.0.1:${port}/`, maxBatchRecords: 100 } },
      // The receiver is of this machine.
      cameraNetworks: { allow: ['127.0.0.0/8'] },
    },
    env: { NODE_OPTIONS: `--import=${preload}`, GANTRY_TEST_CLOCK: clock },
  }
  const first = await TestService.start(options)
  onTestFinished(() => first[Symbol.asyncDispose]())
  await pushUntilStored(first, 5)
  first.kill('SIGKILL')
  await first.exited()
  const yearMs = 365 * 24 * hourMs
  writeFileSync(clock, String(yearMs))
  const second = await TestService.start({ ...options, like: first })
  onTestFinished(() => second[Symbol.asyncDispose]())
  await pushUntilStored(second, 5)
  for (const wrongByMs of [-56 * yearMs, 0]) {
    writeFileSync(clock, String(wrongByMs))
    await pushUntilStored(second, (await recordsOf(second, 'stored')) + 5)
  }
  expect(await recordsOf(second, 'deleted')).toBe(0)
  const receiver = await WebhookReceiver.start(undefined, port)
  onTestFinished(() => receiver.stop())
  const got = () =>
    receiver.posted.flatMap(({ body }) => JSON.parse(body) as { id: string; type: string; time: string }[])
  const results = () => got().filter(({ type }) => type === 'gantry.detections.v1')
  await until('what all clocks told', () => results().length >= 20, 60_000)
  const years = new Set(results().map(({ time }) => Math.round((Date.parse(time) - Date.now()) / yearMs)))
  expect(years.has(0)).toBe(true)
  expect(years.has(1)).toBe(true)
  expect(got().filter(({ type }) => type === 'gantry.gap.v1')).toEqual([])
}, 240_000)

it('R146: records grow old though the clock goes back a day, and what is over its age is told', async () => {
  const clock = join(tempDir(), 'offset')
  writeFileSync(clock, '0')
  const port = await freePort()
  const service = await TestService.start({
    pipeline: {
      cameras: [{ id: 'cam-1', url: 'push:' }],
      store: { maxAge: 15 },
      sinks: { webhook: { url: `http://127.0.0.1:${port}/`, maxBatchRecords: 100 } },
      // The receiver is of this machine.
      cameraNetworks: { allow: ['127.0.0.0/8'] },
    },
    env: { NODE_OPTIONS: `--import=${preload}`, GANTRY_TEST_CLOCK: clock },
  })
  onTestFinished(() => service[Symbol.asyncDispose]())
  await pushUntilStored(service, 3)
  writeFileSync(clock, String(-24 * hourMs))
  await until('they are over their age', async () => (await recordsOf(service, 'deleted')) >= 3, 60_000)
  const receiver = await WebhookReceiver.start(undefined, port)
  onTestFinished(() => receiver.stop())
  await until('the gap', () => receiver.posted.some(({ body }) => body.includes('gantry.gap.v1')), 60_000)
}, 180_000)

function recordsOf(service: TestService, result: string): Promise<number> {
  return service.metric(new RegExp(`gantry_store_records_total\\{result="${result}"\\}`))
}

/** Gives the camera pictures until so many records of this run are stored. */
async function pushUntilStored(service: TestService, count: number): Promise<void> {
  const image = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const request = { method: 'POST', headers: { 'content-type': 'image/png' }, body: new Uint8Array(image) }
  const isStored = async () => {
    await service.fetch('/api/v1/cameras/cam-1/frames', request)
    return (await recordsOf(service, 'stored')) >= count
  }
  await until('pictures analysed', isStored, 60_000)
}
