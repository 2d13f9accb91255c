import { Kafka, logLevel } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TopicReader } from '../../src/cluster/topic-reader.js'
import { kafkaMissing, sharedKafka } from '../support/kafka.js'
import { leadersOf } from '../support/topic-leaders.js'
import { until } from '../support/until.js'

const missing = await kafkaMissing()
const numPartitions = 64

describe.skipIf(missing !== undefined)('a reader of a topic', () => {
  let broker: Awaited<ReturnType<typeof sharedKafka>>
  let kafka: Kafka
  let made = 0

  beforeAll(async () => {
    broker = await sharedKafka()
    kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING })
  }, 120_000)
  afterAll(() => broker.release())

  async function topic(): Promise<string> {
    const name = `read-${process.pid}-${(made += 1)}`
    const admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({ waitForLeaders: false, topics: [{ topic: name, numPartitions }] })
    await leadersOf(admin, name)
    await admin.disconnect()
    return name
  }

  /** What has been read by the time that the reader says it has read all. */
  async function readWhole(name: string) {
    const read: string[] = []
    const cut = new AbortController()
    const reader = new TopicReader(name, `group-${name}`, ({ key }) => read.push(key))
    let whole: readonly string[] | undefined
    // Brokers that have just made a topic or a group may say that they are not ready: whoever reads begins again.
    const reading = async () => {
      while (!cut.signal.aborted)
        await reader.run(kafka, () => (whole = [...read]), cut.signal).catch(() => undefined)
    }
    const ended = reading()
    try {
      return { reader, read: await until('the end', () => whole, 30_000) }
    } finally {
      cut.abort()
      await ended
    }
  }

  it('R170: has read all of a topic without records, and of one with some', async () => {
    const name = await topic()
    expect((await readWhole(name)).read).toEqual([])
    const producer = kafka.producer()
    await producer.connect()
    const keys = Array.from({ length: 200 }, (_, index) => `key-${index}`)
    await producer.send({ topic: name, messages: keys.map((key) => ({ key, value: '{}' })) })
    await producer.disconnect()
    expect([...(await readWhole(name)).read].sort()).toEqual([...keys].sort())
  }, 60_000)

  it('R170: has read all where partitions end with what a transaction leaves, or with what was deleted', async () => {
    const name = await topic()
    const producer = kafka.producer({ transactionalId: `writer-${name}`, maxInFlightRequests: 1 })
    await producer.connect()
    const keys = Array.from({ length: 100 }, (_, index) => `key-${index}`)
    const messages = keys.map((key) => ({ key, value: '{}' }))
    const committed = await producer.transaction()
    await committed.send({ topic: name, messages })
    await committed.commit()
    const aborted = await producer.transaction()
    await aborted.send({ topic: name, messages: [{ key: 'never', value: '{}' }] })
    await aborted.abort()
    await producer.disconnect()
    const { read } = await readWhole(name)
    expect([...read].sort()).toEqual([...keys].sort())

    const admin = kafka.admin()
    await admin.connect()
    const ends = await admin.fetchTopicOffsets(name)
    const partitions = ends.map(({ partition, high }) => ({ partition, offset: high }))
    await admin.deleteTopicRecords({ topic: name, partitions })
    await admin.disconnect()
    expect((await readWhole(name)).read).toEqual([])
  }, 60_000)
})
