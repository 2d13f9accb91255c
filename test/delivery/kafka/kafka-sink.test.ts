import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  ConfigResourceTypes,
  Kafka,
  logLevel,
  ResourcePatternTypes,
} from 'kafkajs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { sinkFilterSchema } from '../../../src/config/sink-filter.js'
import { detectionsMessageSchema } from '../../../src/messages/detections-message.js'
import { refusesIdempotence } from '../../../src/delivery/kafka/kafka-errors.js'
import { detectionsMessage } from '../../support/detections.js'
import { consumeAll, type ReceivedRecord } from '../../support/kafka-records.js'
import { KafkaBroker, kafkaMissing, sharedKafka, storedBatches } from '../../support/kafka.js'
import { freePort } from '../../support/free-port.js'
import { until } from '../../support/until.js'
import { kafkaSink, ownTopic } from './kafka-fixture.js'

const missing = await kafkaMissing()
const withKcat = spawnSync('kcat', ['-V'], { stdio: 'ignore' }).status === 0

const ended: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ended.splice(0)) await end()
})

const ids = (records: readonly ReceivedRecord[]) => records.map(({ headers }) => headers['ce_id'])

describe('The sink of Kafka without a broker', () => {
  it('has a filter of its own, and counts what it leaves out', async () => {
    const filter = sinkFilterSchema.parse({ labels: ['helmet'], maxPerMinute: 2 })
    const { sink, accept, counted } = kafkaSink('127.0.0.1:9', ownTopic(), { filter })
    for (const seq of [1, 2, 3]) accept(detectionsMessage({ seq }))
    accept(detectionsMessage({ seq: 4, detections: [] }))
    expect(sink.health).toMatchObject({ queued: 3, filtered: 1, dropped: 0 })
    expect(await counted('filtered')).toBe(1)
    await sink.stop(0)
  })

  it('R12: starts and accepts at once, keeps the newest records in its bounds, and counts what went', async () => {
    const { sink, accept, counted, up, lines } = kafkaSink(`127.0.0.1:${await freePort()}`, 'none', {
      maxQueuedRecords: 100,
    })
    const startMs = performance.now()
    sink.start()
    for (let seq = 1; seq <= 250; seq += 1) accept(detectionsMessage({ seq }))
    expect(performance.now() - startMs).toBeLessThan(250)
    expect(sink.health).toMatchObject({ queued: 100, dropped: 150, delivered: 0 })
    await until('the failure is noticed', () => sink.health.state === 'down')
    expect(sink.health.reason).toContain('ECONNREFUSED')
    expect(await up()).toBe(0)
    await until('several attempts', () => lines.some(({ msg }) => msg === 'kafka down, retrying'))
    const stopMs = performance.now()
    await sink.stop(3_000)
    expect(performance.now() - stopMs).toBeLessThan(3_500)
    expect(sink.health).toMatchObject({ state: 'stopped', queued: 0, dropped: 250 })
    expect(await counted('dropped')).toBe(250)
  })

  it('never writes the password anywhere', async () => {
    const password = 'Canary-7Pass'
    const { sink, lines, accept } = kafkaSink(`127.0.0.1:${await freePort()}`, 'none', {
      sasl: { mechanism: 'plain', username: 'gantry', password },
    })
    sink.start()
    accept(detectionsMessage())
    await until('the failure is noticed', () => sink.health.state === 'down')
    await sink.stop(100)
    expect(lines.length).toBeGreaterThan(0)
    expect(JSON.stringify([lines, sink.health])).not.toContain(password)
  })
})

describe.skipIf(missing !== undefined)('The sink of Kafka on a running broker', () => {
  let broker: Awaited<ReturnType<typeof sharedKafka>>
  let address: string
  beforeAll(async () => {
    broker = await sharedKafka()
    ;({ address } = broker)
  }, 120_000)
  afterAll(() => broker?.release())

  it('creates the topic with its settings and writes CloudEvents whose value is the message', async () => {
    const topic = ownTopic()
    const { sink, accept, counted, up } = kafkaSink(address, topic, { partitions: 3, retentionMs: 3_600_000 })
    sink.start()
    const capturedAtMs = Date.now() - 1_000
    const sent = ['dock-1', 'gate', 'dock-1'].map((cameraId, i) =>
      detectionsMessage({ cameraId, seq: i + 1, capturedAtMs: capturedAtMs + i }),
    )
    sent.forEach(accept)
    await until('delivery', () => sink.health.delivered === 3)
    const consumer = await consumeAll(address, topic)
    ended.push(consumer.stop)
    const records = await consumer.atLeast(3)
    for (const message of sent) {
      const record = records.find(({ value }) => detectionsMessageSchema.parse(value).seq === message.seq)
      expect(record).toMatchObject({
        key: message.cameraId,
        value: message,
        headers: {
          ce_specversion: '1.0',
          ce_id: `${message.cameraId}/e1/${message.seq}`,
          ce_type: 'gantry.detections.v1',
          ce_source: `/cameras/${message.cameraId}`,
          ce_time: message.capturedAt,
          'content-type': 'application/json',
        },
      })
    }
    expect(sink.health).toMatchObject({ state: 'up', queued: 0, dropped: 0 })
    expect(await counted('delivered')).toBe(3)
    expect(await up()).toBe(1)
    await sink.stop(2_000)
    expect(await up()).toBe(0)

    const admin = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    ended.push(() => admin.disconnect())
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    expect(topics[0]?.partitions).toHaveLength(3)
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
    })
    const settings = resources[0]?.configEntries.map((entry) => [entry.configName, entry.configValue])
    expect(Object.fromEntries(settings ?? [])).toMatchObject({
      'retention.ms': '3600000',
      'message.timestamp.type': 'LogAppendTime',
    })
  })

  it.skipIf(!withKcat)('is read the same by another client library', async () => {
    const topic = ownTopic()
    const { sink, accept } = kafkaSink(address, topic, { partitions: 1 })
    sink.start()
    const message = detectionsMessage({ cameraId: 'gate', seq: 9 })
    accept(message)
    await sink.stop(20_000)
    const args = ['-b', address, '-C', '-t', topic, '-o', 'beginning', '-e', '-q', '-J']
    const { stdout } = await promisify(execFile)('kcat', args, { timeout: 20_000 })
    const record = JSON.parse(stdout) as { key: string; payload: string; headers: string[] }
    expect(record.key).toBe('gate')
    expect(JSON.parse(record.payload)).toEqual(message)
    expect(record.headers).toEqual(
      expect.arrayContaining(['ce_id', 'gate/e1/9', 'ce_type', 'gantry.detections.v1']),
    )
  })

  it('keeps the order of each camera over many batches and delivers all before it stops', async () => {
    const topic = ownTopic()
    const { sink, accept } = kafkaSink(address, topic, { partitions: 3, maxBatchRecords: 40, lingerMs: 5 })
    sink.start()
    for (let seq = 1; seq <= 600; seq += 1) accept(detectionsMessage({ cameraId: `cam-${seq % 5}`, seq }))
    await sink.stop(20_000)
    expect(sink.health).toMatchObject({ delivered: 600, dropped: 0, queued: 0 })
    const consumer = await consumeAll(address, topic)
    ended.push(consumer.stop)
    const records = await consumer.atLeast(600)
    expect(new Set(ids(records)).size).toBe(600)
    for (let camera = 0; camera < 5; camera += 1) {
      const seqs = records
        .filter(({ key }) => key === `cam-${camera}`)
        .map(({ value }) => detectionsMessageSchema.parse(value).seq)
      expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
    }
  })

  it('compresses record batches on their way, unless told not to', async () => {
    const stored = { gzip: 0, none: 0 }
    for (const compression of ['gzip', 'none'] as const) {
      const topic = ownTopic()
      const { sink, accept } = kafkaSink(address, topic, { partitions: 1, lingerMs: 200, compression })
      sink.start()
      for (let seq = 1; seq <= 50; seq += 1) accept(detectionsMessage({ seq }))
      await sink.stop(20_000)
      const batches = await storedBatches(broker, topic)
      expect(batches.reduce((sum, { records }) => sum + records, 0)).toBe(50)
      expect(new Set(batches.map(({ codec }) => codec))).toEqual(new Set([compression]))
      stored[compression] = batches.reduce((sum, { bytes }) => sum + bytes, 0)
    }
    expect(stored.gzip).toBeLessThan(stored.none / 2)
  }, 90_000)
})

describe.skipIf(missing !== undefined)('The sink of Kafka and a broker that comes and goes', () => {
  it('R13: delivers once the broker appears, and loses nothing acknowledged when it is killed in flight', async () => {
    const broker = await KafkaBroker.prepare()
    const topic = ownTopic()
    const { sink, accept } = kafkaSink(broker.address, topic, { partitions: 2 })
    ended.push(
      () => broker.stop(),
      () => sink.stop(0),
    )
    sink.start()
    let seq = 0
    const feed = setInterval(
      () => accept(detectionsMessage({ cameraId: `cam-${seq % 3}`, seq: (seq += 1) })),
      5,
    )
    try {
      await until('the failure is noticed', () => sink.health.state === 'down')
      await broker.start()
      const backMs = performance.now()
      await until('the backlog is delivered', () => sink.health.delivered > 0)
      expect(performance.now() - backMs).toBeLessThan(5_000)
      await until('records flow', () => sink.health.delivered > 200)

      await broker.kill()
      const atKill = sink.health.delivered
      await until('the loss is noticed', () => sink.health.state === 'down')
      await broker.start()
      const restartedMs = performance.now()
      await until('records flow again', () => sink.health.delivered > atKill + 100)
      expect(performance.now() - restartedMs).toBeLessThan(5_000)
    } finally {
      clearInterval(feed)
    }
    await sink.stop(20_000)
    expect(sink.health).toMatchObject({ delivered: seq, dropped: 0 })
    const consumer = await consumeAll(broker.address, topic)
    ended.unshift(consumer.stop)
    const records = await consumer.atLeast(seq)
    const unique = new Set(ids(records))
    expect(unique.size).toBe(seq)
    // A repeated record is the same record: same id, same value.
    const byId = new Map(records.map((record) => [record.headers['ce_id'], record.value]))
    for (const record of records) expect(record.value).toEqual(byId.get(record.headers['ce_id']))
    expect(records.length - unique.size).toBeLessThanOrEqual(500)
  }, 240_000)
})

describe.skipIf(missing !== undefined)('The sink of Kafka on a broker that gives it no producer id', () => {
  /** Everything is allowed but producer ids. */
  async function refuseProducerIds(kafka: Kafka): Promise<void> {
    const admin = kafka.admin()
    await admin.connect()
    const rule = { principal: 'User:ANONYMOUS', host: '*', resourcePatternType: ResourcePatternTypes.LITERAL }
    const cluster = { ...rule, resourceType: AclResourceTypes.CLUSTER, resourceName: 'kafka-cluster' }
    await admin.createAcls({
      acl: [
        { ...cluster, operation: AclOperationTypes.ALL, permissionType: AclPermissionTypes.ALLOW },
        {
          ...cluster,
          operation: AclOperationTypes.IDEMPOTENT_WRITE,
          permissionType: AclPermissionTypes.DENY,
        },
        // Who may write to any topic gets a producer id too (KIP-679). Brokers try that with a topic of this name.
        {
          ...rule,
          resourceType: AclResourceTypes.TOPIC,
          resourceName: 'hardcode',
          operation: AclOperationTypes.WRITE,
          permissionType: AclPermissionTypes.DENY,
        },
      ],
    })
    await admin.disconnect()
    await until('the rules hold', async () => {
      const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
      const refused = producer.connect().then(
        () => false,
        (error: unknown) => refusesIdempotence(error),
      )
      return refused.finally(() => producer.disconnect())
    })
  }

  it('sends without one, and says so once', async () => {
    const broker = await KafkaBroker.start({
      properties: {
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'allow.everyone.if.no.acl.found': 'true',
      },
    })
    ended.push(() => broker.stop())
    await refuseProducerIds(new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }))
    const topic = ownTopic()
    const { sink, accept, lines } = kafkaSink(broker.address, topic)
    ended.unshift(() => sink.stop(0))
    sink.start()
    const sent = [1, 2, 3].map((seq) => detectionsMessage({ seq }))
    sent.forEach(accept)
    await until('delivery', () => sink.health.delivered === 3, 20_000)
    expect(sink.health).toMatchObject({ state: 'up', queued: 0, dropped: 0 })
    const told = 'broker gives no producer id, sending without idempotence'
    expect(lines.filter(({ msg }) => msg === told)).toHaveLength(1)
    const consumer = await consumeAll(broker.address, topic)
    ended.unshift(consumer.stop)
    const records = await consumer.atLeast(3)
    expect(records.map(({ value }) => value)).toEqual(sent)
  }, 120_000)
})
