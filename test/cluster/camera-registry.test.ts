import { Kafka, logLevel } from 'kafkajs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { CameraRegistry } from '../../src/cluster/camera-registry.js'
import { slotOf } from '../../src/cluster/camera-slot.js'
import { cameraSchema, type CameraConfig } from '../../src/config/camera.js'
import { consumeAll } from '../support/kafka-records.js'
import { KafkaBroker, kafkaMissing } from '../support/kafka.js'
import { silentLog } from '../support/silent-log.js'
import { leadersOf } from '../support/topic-leaders.js'
import { until } from '../support/until.js'

const slots = 16
const missing = await kafkaMissing()
const url = 'rtsp://192.0.2.7/stream'
/** Brokers and groups of a busy machine take their time. */
const withinMs = 30_000

function camera(id: string, more: Partial<CameraConfig> = {}): CameraConfig {
  return cameraSchema.parse({ id, url, ...more })
}

describe.skipIf(missing !== undefined)('the topic of cameras', () => {
  let broker: KafkaBroker
  let kafka: Kafka
  const registries: CameraRegistry[] = []
  let made = 0

  beforeAll(async () => {
    broker = await KafkaBroker.start()
    kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING })
  }, 120_000)

  afterEach(() => Promise.all(registries.splice(0).map((registry) => registry.stop())))
  afterAll(() => broker.stop())

  async function topicsOf() {
    const cameras = `cameras-${(made += 1)}`
    const topics = { cameras, cameraErrors: `${cameras}-errors` }
    const admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({
      waitForLeaders: false,
      topics: [
        {
          topic: cameras,
          numPartitions: slots,
          configEntries: [{ name: 'cleanup.policy', value: 'compact' }],
        },
        { topic: topics.cameraErrors, numPartitions: 1 },
      ],
    })
    await Promise.all([cameras, topics.cameraErrors].map((topic) => leadersOf(admin, topic)))
    await admin.disconnect()
    return topics
  }

  async function registryOf(
    topics: Awaited<ReturnType<typeof topicsOf>>,
    node = 'a',
    owns = true,
    brokers = [broker.address],
  ) {
    const changes: [string, string | undefined][] = []
    const registry = new CameraRegistry(
      { topics, groupId: `gantry.${topics.cameras}`, slots, node },
      {
        open: () =>
          Promise.resolve(new Kafka({ brokers, logLevel: logLevel.NOTHING, retry: { retries: 2 } })),
        owns: () => owns,
        changed: (id, config) => changes.push([id, config?.url]),
        refused: () => undefined,
        log: silentLog(),
      },
    )
    registries.push(registry)
    registry.start()
    await registry.whole
    return { registry, changes }
  }

  async function program(
    topic: string,
    messages: readonly Readonly<{ key: string; value: unknown; partition?: number }>[],
  ): Promise<void> {
    const producer = kafka.producer()
    await producer.connect()
    for (const { value, ...message } of messages) {
      const text = typeof value === 'string' || value === null ? value : JSON.stringify(value)
      await producer.send({ topic, messages: [{ ...message, value: text }] })
    }
    await producer.disconnect()
  }

  it('is read whole by each node, which hear of every change', async () => {
    const topics = await topicsOf()
    const first = await registryOf(topics)
    expect(first.registry.cameras.size).toBe(0)
    for (let index = 1; index <= 20; index += 1) await first.registry.set(camera(`cam-${index}`))
    await first.registry.set(camera('cam-3', { sampleFps: 2 }))
    await first.registry.remove('cam-4')
    const second = await registryOf(topics, 'b', false)
    expect([...second.registry.cameras].sort()).toEqual([...first.registry.cameras].sort())
    expect(second.registry.cameras.size).toBe(19)
    expect(second.registry.cameras.get('cam-3')?.sampleFps).toBe(2)
    await second.registry.set(camera('cam-21'))
    await until('the other node', () => first.registry.cameras.has('cam-21'), withinMs)
    expect(first.changes.at(-1)).toEqual(['cam-21', url])
  }, 60_000)

  it('takes cameras of programs, whichever partition they write to', async () => {
    const topics = await topicsOf()
    const { registry } = await registryOf(topics)
    const elsewhere = (slotOf('dock', slots) + 1) % slots
    await program(topics.cameras, [
      { key: 'gate', value: { version: 1, camera: { url } } },
      { key: 'dock', value: { version: 1, camera: { id: 'dock', url } }, partition: elsewhere },
    ])
    await until('both', () => registry.cameras.has('gate') && registry.cameras.has('dock'), withinMs)
    expect(registry.cameras.get('gate')).toEqual(camera('gate'))
    await program(topics.cameras, [{ key: 'dock', value: null, partition: elsewhere }])
    await until('removal', () => !registry.cameras.has('dock'), withinMs)
    // One who comes later finds it in order.
    const later = await registryOf(topics, 'c', false)
    expect([...later.registry.cameras.keys()]).toEqual(['gate'])
  }, 60_000)

  it.each([
    ['no JSON', '{"version":1,', /no JSON/],
    ['an unknown setting', { version: 1, camera: { url, fps: 3 } }, /camera\.fps/],
    ['no version', { camera: { url } }, /version/],
    ['a number out of range', { version: 1, camera: { url, sampleFps: 0 } }, /camera\.sampleFps/],
    ['another id', { version: 1, camera: { id: 'other', url } }, /camera\.id/],
    ['no camera', { version: 1 }, /camera/],
    ['a list', [], /list/],
    ['no text', '', /no JSON/],
  ])(
    'tells what is wrong with %s, and keeps the camera as it was',
    async (_, value, reason) => {
      const topics = await topicsOf()
      const { registry } = await registryOf(topics)
      await registry.set(camera('dock', { sampleFps: 3 }))
      await program(topics.cameras, [
        { key: 'dock', value },
        { key: 'new', value },
      ])
      const errors = await consumeAll(broker.address, topics.cameraErrors)
      const told = await errors.atLeast(2)
      await errors.stop()
      expect(told.map(({ key }) => key).sort()).toEqual(['dock', 'new'])
      for (const { value: error } of told)
        expect(error).toMatchObject({ reason: expect.stringMatching(reason) as string, node: 'a' })
      expect(registry.cameras.get('dock')?.sampleFps).toBe(3)
      expect(registry.cameras.has('new')).toBe(false)
      await until(
        'good settings again',
        async () => {
          const later = await registryOf(topics, 'later', false)
          return later.registry.cameras.get('dock')?.sampleFps === 3
        },
        withinMs,
      )
    },
    60_000,
  )

  it('leaves a record of a newer version as it is, and the camera too', async () => {
    const topics = await topicsOf()
    const { registry } = await registryOf(topics)
    await registry.set(camera('dock'))
    const newer = { version: 2, camera: { uri: 'x' } }
    await program(topics.cameras, [
      { key: 'dock', value: newer },
      { key: 'new', value: newer },
      { key: 'after', value: { version: 1, camera: { url } } },
    ])
    await until('all', () => registry.cameras.has('after') && registry.has('new'), withinMs)
    expect([...registry.cameras.keys()].sort()).toEqual(['after', 'dock'])
    // What a newer version knows of them would be lost.
    for (const id of ['dock', 'new'])
      await expect(registry.set(camera(id))).rejects.toThrow(/newer version .* version 2/)
    await registry.remove('dock')
    await registry.set(camera('dock'))
  }, 60_000)

  it('passes over keys that are no ids', async () => {
    const topics = await topicsOf()
    const { registry } = await registryOf(topics)
    await program(topics.cameras, [
      { key: '../x', value: { version: 1, camera: { url } } },
      { key: 'good', value: { version: 1, camera: { url } } },
    ])
    await until('the good one', () => registry.cameras.has('good'), withinMs)
    expect([...registry.cameras.keys()]).toEqual(['good'])
  }, 60_000)

  it('R163: says that it cannot write while the brokers are away, and goes on with what it knows', async () => {
    const topics = await topicsOf()
    const { registry, changes } = await registryOf(topics)
    await registry.set(camera('dock'))
    await broker.kill()
    await expect(registry.set(camera('gate'))).rejects.toMatchObject({
      code: 'GANTRY_CLUSTER_UNAVAILABLE',
      retryable: true,
    })
    expect([...registry.cameras.keys()]).toEqual(['dock'])
    await broker.start()
    await until('a write', () => registry.set(camera('gate')).then(() => true), 60_000, 500)
    expect(changes.filter(([id]) => id === 'dock')).toHaveLength(1)
  }, 150_000)
})
