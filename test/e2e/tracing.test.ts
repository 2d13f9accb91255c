import { createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { traceparentOf } from '../../src/messages/traceparent.js'
import { consumeAll } from '../support/kafka-records.js'
import { kafkaMissing, sharedKafka } from '../support/kafka.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { freePort } from '../support/free-port.js'
import { Mosquitto, mosquittoMissing } from '../support/mosquitto.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { OtlpReceiver, outsideParents, type ReceivedSpan, shapeOf } from '../support/otlp-receiver.js'
import { TestService } from '../support/service.js'
import { WebhookReceiver } from '../support/sinks.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const stages = 'queue, infer, postprocess, publish, commit'
const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

const noKafka = await kafkaMissing()

describe('traces of a running service', () => {
  const cleanUp: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  async function camera() {
    const rtsp = await rtspCameras(1)
    cleanUp.push(() => rtsp.stop())
    return cameraSettings(rtsp, 1, 5)
  }

  async function receiver(port?: number): Promise<OtlpReceiver> {
    const started = await OtlpReceiver.start(undefined, port)
    cleanUp.push(() => started.stop())
    return started
  }

  async function running(pipeline: object, env: NodeJS.ProcessEnv = {}, like?: TestService) {
    const service = await TestService.start({
      pipeline: { ...pipeline },
      env,
      ...(like && { like }),
    })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    return service
  }

  /** Frames whose trace has come as a whole, once there are so many. */
  const frames = (taking: OtlpReceiver, count: number) =>
    until(
      'traces of frames',
      () => {
        const whole = taking.traces().filter((spans) => spans.some(({ parentSpanId }) => parentSpanId === ''))
        return whole.length >= count ? whole : undefined
      },
      60_000,
    )
  function repositoryOfRed(): string {
    const dir = tempDir()
    addModel(dir, 'red', { onnx: redDetector('uint8-nhwc') })
    return dir
  }

  const rootOf = (spans: readonly ReceivedSpan[]) => spans.find(({ parentSpanId }) => parentSpanId === '')!

  it('a frame of a camera by RTSP is a trace from its capture to a webhook and a viewer, which can go on with it', async () => {
    const [cameras, taking, hook] = [await camera(), await receiver(), await WebhookReceiver.start()]
    cleanUp.push(() => hook.stop())
    const service = await running({
      cameras,
      sinks: { webhook: { url: hook.url } },
      tracing: { endpoint: taking.url, sampling: 1, serviceName: 'dock' },
    })
    const viewer = await service.stream()
    await viewer.detections('cam-1', 5)
    const traces = await frames(taking, 5)
    for (const spans of traces) {
      expect(shapeOf(spans)).toMatch(new RegExp(`^frame \\((${stages}|publish, commit), deliver webhook\\)$`))
      expect(outsideParents(spans)).toEqual([])
    }
    const analysed = traces.find((spans) => spans.some(({ name }) => name === 'infer')) ?? []
    const root = rootOf(analysed)
    expect(root).toMatchObject({
      attributes: { 'gantry.camera.id': 'cam-1', 'gantry.model.name': 'ppe' },
      resource: { 'service.name': 'dock', 'gantry.process': 'control', 'gantry.pipeline': 'e2e' },
    })
    const traceparent = traceparentOf({ ...root, isSampled: true })
    const posted = hook.posted.find(({ headers }) => headers['traceparent'] === traceparent)
    expect(posted?.headers['ce-traceparent']).toBe(traceparent)
    const record = JSON.parse(posted?.body ?? '{}') as {
      traceparent: string
      seq: number
      capturedAt: string
      timingsMs: { queue: number; infer: number; captureToPublish: number }
    }
    expect(record).toMatchObject({ traceparent, seq: root.attributes['gantry.frame.seq'] })
    // The times are those of the record.
    expect(Math.abs(root.startMs - Date.parse(record.capturedAt))).toBeLessThan(1)
    const lengthOf = (name: string) => {
      const { startMs, endMs } = analysed.find((span) => span.name === name)!
      return endMs - startMs
    }
    expect(lengthOf('infer')).toBeCloseTo(record.timingsMs.infer, 1)
    expect(lengthOf('queue')).toBeCloseTo(record.timingsMs.queue, 1)
    await until('the viewer', () =>
      viewer.messages.some((message) => message.type === 'detections' && message.traceparent !== undefined),
    )
    const { items } = await service.json<{ items: { traceparent?: string }[] }>('/api/v1/detections?limit=50')
    expect(items.some((item) => item.traceparent !== undefined)).toBe(true)
    viewer.close()
  }, 180_000)

  it.skipIf(noKafka !== undefined)(
    'a record in Kafka carries the trace as attribute and as header',
    async () => {
      const [cameras, taking, broker] = [await camera(), await receiver(), await sharedKafka()]
      cleanUp.push(() => broker.release())
      const topic = `traced-${Date.now()}`
      await running({
        cameras,
        sinks: {
          kafka: { brokers: [broker.address], topics: { detections: topic, events: `${topic}-events` } },
        },
        tracing: { endpoint: taking.grpcUrl, protocol: 'grpc', sampling: 1 },
      })
      const consumer = await consumeAll(broker.address, topic)
      cleanUp.push(() => consumer.stop())
      const records = await consumer.atLeast(5, 60_000)
      const traces = await frames(taking, 5)
      const sent = new Set(traces.map((spans) => traceparentOf({ ...rootOf(spans), isSampled: true })))
      const carried = records.filter(({ headers }) => sent.has(headers['ce_traceparent'] ?? ''))
      expect(carried.length).toBeGreaterThan(0)
      for (const { headers } of carried) expect(headers['traceparent']).toBe(headers['ce_traceparent'])
      expect(traces.some((spans) => spans.some(({ name }) => name === 'deliver kafka'))).toBe(true)
    },
    180_000,
  )

  it.skipIf(mosquittoMissing() !== undefined)(
    'a message of MQTT carries it as user property',
    async () => {
      const [cameras, taking, broker] = [await camera(), await receiver(), await Mosquitto.start()]
      cleanUp.push(() => broker.stop())
      const heard = await broker.hear('#')
      await running({
        cameras,
        sinks: { mqtt: { url: broker.url } },
        tracing: { endpoint: taking.url, sampling: 1 },
      })
      const traces = await frames(taking, 1)
      const sent = traces.map((spans) => traceparentOf({ ...rootOf(spans), isSampled: true }))
      expect(heard.map(({ userProperties }) => userProperties['traceparent'])).toEqual(
        expect.arrayContaining(sent),
      )
    },
    120_000,
  )

  it('R158: a collector that is away slows nothing, is told once, and gets what comes later; frames that waited join their trace', async () => {
    const [cameras, port, hookPort] = [await camera(), await freePort(), await freePort()]
    const pipeline = {
      cameras,
      sinks: { webhook: { url: `http://127.0.0.1:${hookPort}/hook` } },
      tracing: { endpoint: `http://127.0.0.1:${port}`, sampling: 1, timeoutMs: 500 },
    }
    const first = await running(pipeline)
    const viewer = await first.stream()
    await viewer.detections('cam-1', 30)
    await until('the log', () => first.stderr.includes('spans do not arrive'), 30_000)
    await viewer.detections('cam-1', 30)
    expect(first.stderr.split('spans do not arrive').length).toBe(2)
    viewer.close()
    const beganMs = performance.now()
    await first.end()
    expect(performance.now() - beganMs).toBeLessThan(45_000)
    const [taking, hook] = [await receiver(port), await WebhookReceiver.start(undefined, hookPort)]
    cleanUp.push(() => hook.stop())
    await running(pipeline, {}, first)
    await until('deliveries', () => taking.spans.some(({ name }) => name === 'deliver webhook'), 60_000)
    // Records of the run before carry their trace over the restart.
    const carried = hook.posted.map(({ headers }) => String(headers['ce-traceparent']))
    const late = await until('a delivery of the run before', () =>
      taking.spans.find(
        ({ name, traceId: of, parentSpanId }) =>
          name === 'deliver webhook' &&
          !taking.spans.some((other) => other.name === 'frame' && other.traceId === of) &&
          carried.includes(`00-${of}-${parentSpanId}-01`),
      ),
    )
    expect(late.endMs).toBeGreaterThan(late.startMs)
  }, 180_000)

  it('R156: a collector that hangs holds up neither cameras nor the end of the service', async () => {
    const server = createServer((socket) => socket.on('error', () => undefined).resume())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanUp.push(async () => server.close())
    const { port } = server.address() as { port: number }
    const tracing = { endpoint: `http://127.0.0.1:${port}`, sampling: 1, timeoutMs: 60_000 }
    const service = await running({ cameras: await camera(), tracing, modelServer: { enabled: true } })
    const viewer = await service.stream()
    await viewer.detections('cam-1', 30)
    viewer.close()
    const beganMs = performance.now()
    await service.end()
    expect(performance.now() - beganMs).toBeLessThan(20_000)
  }, 120_000)

  it('a request goes on with its trace through the port of the service, by variables of OpenTelemetry alone', async () => {
    const taking = await receiver()
    const service = await running(
      {
        engines: 0,
        modelServer: { enabled: true },
        models: { repository: repositoryOfRed() },
        ensemble: 'red',
      },
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: taking.url,
        OTEL_SERVICE_NAME: 'models',
        OTEL_TRACES_SAMPLER: 'always_off',
      },
    )
    await until('models', async () => (await service.fetch('/v2/health/ready')).ok, 60_000)
    const answer = await service.fetch('/v2/models/red/infer', {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: `00-${traceId}-${spanId}-01` },
      body: JSON.stringify({
        inputs: [
          { name: 'images', datatype: 'UINT8', shape: [1, 64, 64, 3], data: Array(64 * 64 * 3).fill(255) },
        ],
      }),
    })
    expect(answer.status).toBe(200)
    await until('spans', () => taking.spans.some(({ kind }) => kind === 2), 30_000)
    const { spans } = taking
    expect(shapeOf(spans, spanId)).toMatch(
      /^POST \/v2\/models\/\{model\}\/infer \(receive, model red \(queue, .*\), send\)$/,
    )
    expect(spans[0]?.resource).toMatchObject({ 'service.name': 'models', 'gantry.process': 'model-server' })
  }, 120_000)
})
