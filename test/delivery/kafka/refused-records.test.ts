import { Kafka, logLevel, type Admin } from 'kafkajs'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { detectionsMessageSchema } from '../../../src/messages/detections-message.js'
import { kafkaFailure } from '../../../src/delivery/kafka/kafka-errors.js'
import { detectionsMessage } from '../../support/detections.js'
import { consumeAll, type ReceivedRecord } from '../../support/kafka-records.js'
import { kafkaMissing, sharedKafka } from '../../support/kafka.js'
import { until } from '../../support/until.js'
import { kafkaSink, ownTopic } from './kafka-fixture.js'

const missing = await kafkaMissing()

const hourMs = 3_600_000
const boxPx = { x1: 1, y1: 1, x2: 2, y2: 2 }
/** Some 20 kB. */
const crowd = Array.from({ length: 200 }, (_, i) => ({ label: `label-${i}`, score: 0.5, boxPx }))

describe.skipIf(missing !== undefined)('The sink of Kafka and records that the broker refuses', () => {
  let broker: Awaited<ReturnType<typeof sharedKafka>>
  let admin: Admin
  const ended: (() => Promise<unknown>)[] = []

  beforeAll(async () => {
    broker = await sharedKafka()
    admin = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
  }, 120_000)
  afterEach(async () => {
    vi.restoreAllMocks()
    for (const end of ended.splice(0)) await end()
  })
  afterAll(async () => {
    await admin.disconnect()
    await broker.release()
  })

  /** A topic of somebody else, with the settings of its owner. */
  async function topicWith(settings: Readonly<Record<string, string>>, numPartitions = 3): Promise<string> {
    const topic = ownTopic()
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
    await admin.createTopics({ topics: [{ topic, numPartitions, configEntries }], waitForLeaders: true })
    return topic
  }

  function sinkTo(topic: string, overrides = {}) {
    const made = kafkaSink(broker.address, topic, { lingerMs: 100, ...overrides })
    ended.push(() => made.sink.stop(0))
    made.sink.start()
    return made
  }

  async function stored(topic: string, count: number): Promise<readonly ReceivedRecord[]> {
    const consumer = await consumeAll(broker.address, topic)
    ended.push(consumer.stop)
    return consumer.atLeast(count)
  }

  const seqsOf = (records: readonly ReceivedRecord[], cameraId: string) =>
    records.filter(({ key }) => key === cameraId).map(({ value }) => detectionsMessageSchema.parse(value).seq)

  it('R31: delivers what waited longer than the topic lets records be old, with the time it was captured', async () => {
    const topic = await topicWith({ 'message.timestamp.before.max.ms': '10000' })
    const { sink, accept } = sinkTo(topic)
    const old = detectionsMessage({ seq: 1, capturedAtMs: Date.now() - 60_000 })
    accept(old)
    accept(detectionsMessage({ cameraId: 'gate', seq: 2 }))
    await until('delivery', () => sink.health.delivered === 2)
    const records = await stored(topic, 2)
    const record = records.find(({ key }) => key === old.cameraId)
    expect(record?.headers['ce_time']).toBe(old.capturedAt)
    expect(Number(record?.timestamp)).toBeGreaterThan(Date.now() - 30_000)
  })

  it('R31: keeps records in order while the broker refuses the clock, says so, and delivers them when it is right', async () => {
    const topic = await topicWith({})
    const now = Date.now
    let aheadMs = 2 * hourMs
    vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs)
    const { sink, accept, lines } = sinkTo(topic, { maxBatchRecords: 10, maxQueuedRecords: 15 })
    let seq = 0
    const feed = (count: number) => {
      for (const end = seq + count; seq < end;)
        accept(detectionsMessage({ cameraId: `cam-${seq % 2}`, seq: ++seq }))
    }
    feed(10)
    await until('the refusal is told', () => sink.health.reason.includes('clock'))
    expect(sink.health).toMatchObject({ state: 'down', queued: 10, delivered: 0, dropped: 0 })
    feed(20)
    // What is under way, and the bound of the queue.
    expect(sink.health).toMatchObject({ queued: 25, dropped: 5, rejected: {} })
    aheadMs = 0
    await until('delivery', () => sink.health.delivered === 25)
    expect(sink.health).toMatchObject({
      state: 'up',
      reason: 'connected',
      queued: 0,
      dropped: 5,
      rejected: {},
    })
    const told = lines.filter(({ msg }) => msg === 'kafka down, retrying')
    expect(told).toMatchObject([{ reason: expect.stringContaining('INVALID_TIMESTAMP') as string }])
    const records = await stored(topic, 25)
    const odd = [1, 3, 5, 7, 9, 17, 19, 21, 23, 25, 27, 29]
    expect(seqsOf(records, 'cam-0')).toEqual(odd)
    expect(records).toHaveLength(25)
  })

  it.each([true, false])(
    'R31: gives up a record too large for the topic, and delivers those around it in order, idempotent: %s',
    async (idempotent) => {
      const topic = await topicWith({ 'max.message.bytes': '6000' })
      const { sink, accept, counted, rejected, lines } = sinkTo(topic, { compression: 'none', idempotent })
      const tooLarge = new Set([1, 30, 31, 60])
      for (let seq = 1; seq <= 60; seq += 1) {
        const detections = tooLarge.has(seq) ? { detections: crowd } : {}
        accept(detectionsMessage({ cameraId: `cam-${seq % 5}`, seq, ...detections }))
      }
      await until('all settled', () => sink.health.delivered + sink.health.dropped === 60)
      expect(sink.health).toMatchObject({ state: 'up', rejected: { MESSAGE_TOO_LARGE: 4 } })
      expect(await counted('rejected')).toBe(4)
      expect(await rejected()).toEqual({ MESSAGE_TOO_LARGE: 4 })
      expect(lines.filter(({ msg }) => msg === 'broker refuses records for good')).toHaveLength(1)
      expect(lines.filter(({ msg }) => msg === 'kafka down, retrying')).toEqual([])
      const records = await stored(topic, 56)
      for (let camera = 0; camera < 5; camera += 1) {
        const expected = Array.from({ length: 60 }, (_, i) => i + 1).filter(
          (seq) => seq % 5 === camera && !tooLarge.has(seq),
        )
        // Without producer ids a batch that was taken beside a refused one comes twice, as after any failure.
        const seqs = seqsOf(records, `cam-${camera}`)
        expect(idempotent ? seqs : [...new Set(seqs)]).toEqual(expected)
      }
      if (idempotent) expect(records).toHaveLength(56)
    },
  )

  it('knows by their names the refusals that real brokers send', async () => {
    const producer = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).producer()
    await producer.connect()
    ended.push(() => producer.disconnect())
    type Given = Readonly<{ key: string | null; value: string; timestamp?: string }>
    const refusal = (topic: string, message: Given) =>
      producer.send({ topic, messages: [message] }).then(
        () => undefined,
        (error: unknown) => kafkaFailure(error).refusal,
      )
    const compacted = await topicWith({ 'cleanup.policy': 'compact' }, 1)
    const record = { key: 'a', value: 'x' }
    expect(await refusal(compacted, { ...record, key: null })).toMatchObject({
      reason: 'INVALID_RECORD',
      certain: true,
    })
    expect(await refusal(compacted, record)).toBeUndefined()
    const later = String(Date.now() + 2 * hourMs)
    expect(await refusal(compacted, { ...record, timestamp: later })).toMatchObject({
      reason: 'INVALID_TIMESTAMP',
    })
    const settings = { 'segment.bytes': String(1024 ** 2), 'max.message.bytes': String(4 * 1024 ** 2) }
    const segments = await topicWith(settings, 1)
    expect(await refusal(segments, { ...record, value: 'x'.repeat(2 * 1024 ** 2) })).toMatchObject({
      reason: 'RECORD_LIST_TOO_LARGE',
    })
    expect(await refusal(compacted, { ...record, value: 5 as unknown as string })).toMatchObject({
      reason: 'CLIENT_ERROR',
    })
  })
})
