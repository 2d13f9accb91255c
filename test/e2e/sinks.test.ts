import { afterEach, describe, expect, it } from 'vitest'
import type { Readiness } from '../../src/api/gantry.js'
import { statusSchema } from '../../src/api/readiness-schemas.js'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { dockClip } from '../support/demo-cameras.js'
import { Mosquitto, mosquittoMissing } from '../support/mosquitto.js'
import { TestService } from '../support/service.js'
import { WebhookReceiver } from '../support/sinks.js'
import { until } from '../support/until.js'

const secrets = ['wh-s3cret-of-a-service-1', 'b3arer-of-a-service']

describe.skipIf(mosquittoMissing() !== undefined)('a service with several sinks', () => {
  const cleanUp: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })

  it('R117: delivers to each as if it were alone, beside one that hangs and one that is away, and drains at the end', async () => {
    const rtsp = new LoopingRtspServer()
    await rtsp.start()
    cleanUp.push(() => rtsp.stop())
    await rtsp.addStream('/cam', dockClip)
    const [good, hanging] = [await WebhookReceiver.start(), await WebhookReceiver.start()]
    hanging.answer = () => undefined
    const broker = await Mosquitto.start()
    for (const part of [good, hanging, broker]) cleanUp.push(() => part.stop())
    const heard = await broker.hear('#')
    const pipeline = {
      cameras: [{ id: 'cam', url: rtsp.url('/cam'), sampleFps: 5 }],
      sinks: {
        webhook: [
          {
            name: 'good',
            url: good.url,
            secret: secrets[0],
            headers: { authorization: `Bearer ${secrets[1]}` },
          },
          { name: 'hanging', url: hanging.url },
          { name: 'few', url: good.url.replace('hook', 'few'), filter: { maxPerMinute: 2 } },
        ],
        mqtt: [
          { name: 'plant', url: broker.url, homeAssistant: true },
          { name: 'away', url: 'mqtt://127.0.0.1:9' },
        ],
      },
    }
    const service = await TestService.start({ pipeline, server: { drainSeconds: 3 } })
    cleanUp.push(() => service[Symbol.asyncDispose]())
    // Events go beside results, whatever the filter says of these.
    const idsOf = (path: string) =>
      good.posted
        .filter(({ url, headers }) => url === path && headers['ce-type'] === 'gantry.detections.v1')
        .map(({ headers }) => String(headers['ce-id']))
    const heardIds = () =>
      heard
        .filter(({ topic }) => topic === 'gantry/cameras/cam/detections')
        .map(({ userProperties }) => String(userProperties['id']))
    await until('records at both', () => idsOf('/hook').length >= 20 && heardIds().length >= 20, 60_000)
    expect(idsOf('/few')).toHaveLength(2)
    expect(hanging.posted.length).toBeLessThanOrEqual(2)
    await until('Home Assistant knows of the camera', () =>
      heard.some(({ topic }) => topic === 'homeassistant/sensor/gantry_cam/state/config'),
    )
    const states = heard.filter(({ topic }) => topic === 'gantry/cameras/cam/state')
    expect(JSON.parse(states.at(-1)?.payload ?? '{}')).toMatchObject({ state: 'live' })

    const { sinks } = (await (await service.fetch('/readyz')).json()) as Readiness
    expect(sinks.map(({ name, state }) => [name, state])).toEqual([
      ['good', 'up'],
      ['hanging', expect.stringMatching(/up|down/)],
      ['few', 'up'],
      ['plant', 'up'],
      ['away', 'down'],
    ])
    const status = statusSchema.parse(await (await service.fetch('/api/v1/status')).json())
    expect(status).toMatchObject({
      kafka: null,
      webhooks: [{ name: 'good', signed: true }, { name: 'hanging', signed: false }, { name: 'few' }],
      mqtt: [
        { name: 'plant', broker: broker.url, topicPrefix: 'gantry', homeAssistant: true },
        { name: 'away' },
      ],
    })
    expect(
      await service.metric(/gantry_sink_records_total\{sink="few",result="over_limit"\}/),
    ).toBeGreaterThan(0)

    service.kill('SIGTERM')
    expect(await service.exited()).toBe(0)
    await until(
      'the last will',
      () => heard.findLast(({ topic }) => topic === 'gantry/status')?.payload === 'offline',
    )
    await until('the last records', () => idsOf('/hook').at(-1) === heardIds().at(-1))
    const told = service.stderr + JSON.stringify([status, sinks])
    for (const secret of secrets) expect(told).not.toContain(secret)
  }, 120_000)

  it('R150: is offline to the broker once it is killed, cameras and all, and online again after its next start', async () => {
    const broker = await Mosquitto.start()
    cleanUp.push(() => broker.stop())
    const pipeline = {
      cameras: [{ id: 'cam', url: 'push:' }],
      sinks: { mqtt: { url: broker.url, homeAssistant: true } },
    }
    const heard = await broker.hear('#')
    const statusOf = (messages: typeof heard) =>
      messages.findLast(({ topic }) => topic === 'gantry/status')?.payload
    const first = await TestService.start({ pipeline })
    cleanUp.push(() => first[Symbol.asyncDispose]())
    await until('online', () => statusOf(heard) === 'online')
    await until('its camera', () => heard.some(({ topic }) => topic === 'gantry/cameras/cam/state'))
    first.kill('SIGKILL')
    await first.exited()
    await until('the last will', () => statusOf(heard) === 'offline')
    // Who comes now is told the same: it is retained, and so is what says by it that cameras are unavailable.
    const late = await broker.hear('#')
    await until('what is retained', () => late.length >= 4)
    expect(late.every(({ retain }) => retain)).toBe(true)
    expect(statusOf(late)).toBe('offline')
    const ofCamera = late.find(({ topic }) => topic === 'homeassistant/sensor/gantry_cam/state/config')
    expect(JSON.parse(ofCamera?.payload ?? '{}')).toMatchObject({
      availability: [
        { topic: 'gantry/status', payload_available: 'online', payload_not_available: 'offline' },
      ],
    })
    const second = await TestService.start({ pipeline, like: first })
    cleanUp.push(() => second[Symbol.asyncDispose]())
    await until('online again', () => statusOf(heard) === 'online')
    const later = await broker.hear('gantry/status')
    await until('what is retained then', () => later.length > 0)
    expect(later[0]).toMatchObject({ payload: 'online', retain: true })
  }, 120_000)
})
