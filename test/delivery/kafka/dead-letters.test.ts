import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  Kafka,
  logLevel,
  ResourcePatternTypes,
  type Admin,
} from 'kafkajs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { kafkaSchema, type KafkaConfig } from '../../../src/config/outputs.js'
import { DeadLetters } from '../../../src/delivery/kafka/dead-letters.js'
import { detectionsMessage } from '../../support/detections.js'
import { consumeAll } from '../../support/kafka-records.js'
import { KafkaBroker, kafkaMissing, sharedKafka } from '../../support/kafka.js'
import { queuedRecord } from '../../support/queued-record.js'
import { until } from '../../support/until.js'
import { kafkaSink, ownTopic } from './kafka-fixture.js'

const missing = await kafkaMissing()

const boxPx = { x1: 1, y1: 1, x2: 2, y2: 2 }
/** Some 29 kB. */
const crowd = Array.from({ length: 400 }, (_, i) => ({ label: `label-${i}`, score: 0.5, boxPx }))
const rejection = 'broker refuses records for good'

describe.skipIf(missing !== undefined)('Dead letters of Kafka', () => {
  let address: string
  let admin: Admin
  let release: () => Promise<void>
  const ended: (() => Promise<unknown>)[] = []

  beforeAll(async () => {
    ;({ address, release } = await sharedKafka())
    admin = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
  }, 120_000)
  afterEach(async () => {
    for (const end of ended.splice(0)) await end()
  })
  afterAll(async () => {
    await admin.disconnect()
    await release()
  })

  async function topicOf(maxBytes: number, by = admin): Promise<string> {
    const topic = ownTopic()
    const configEntries = [{ name: 'max.message.bytes', value: String(maxBytes) }]
    await by.createTopics({ topics: [{ topic, numPartitions: 1, configEntries }], waitForLeaders: true })
    return topic
  }

  /** Results 1 to 3, of which the second is too large. @returns what becomes of them */
  async function secondRefused(
    deadLetter: string | false,
    overrides: Partial<KafkaConfig> = {},
    at = { address, topic: '' },
  ) {
    const topic = at.topic === '' ? await topicOf(6_000) : at.topic
    const topics = { ...kafkaSchema.shape.topics.parse(undefined), detections: topic, deadLetter }
    const made = kafkaSink(at.address, topic, { topics, compression: 'none', ...overrides })
    ended.push(() => made.sink.stop(0))
    made.sink.start()
    const large = detectionsMessage({ seq: 2, detections: crowd })
    for (const message of [detectionsMessage({ seq: 1 }), large, detectionsMessage({ seq: 3 })])
      made.accept(message)
    await until('all settled', () => made.sink.health.delivered + made.sink.health.dropped === 3, 60_000)
    expect(made.sink.health).toMatchObject({ state: 'up', delivered: 2, dropped: 1 })
    return { ...made, topic, large, told: made.lines.find(({ msg }) => msg === rejection) }
  }

  async function lettersIn(topic: string, count = 1) {
    const consumer = await consumeAll(address, topic)
    ended.push(consumer.stop)
    return consumer.atLeast(count)
  }

  it('R140: hold the record with its headers, the reason and the topic that it was for', async () => {
    const deadLetter = ownTopic()
    const { topic, large, told, deadLetters } = await secondRefused(deadLetter)
    expect(told).toMatchObject({ reason: 'MESSAGE_TOO_LARGE', deadLetter })
    expect(told).not.toHaveProperty('deadLetterFailure')
    expect(await deadLetters()).toEqual({ written: 1 })
    const [letter] = await lettersIn(deadLetter)
    expect(letter).toMatchObject({
      key: 'dock-1',
      value: large,
      headers: {
        ce_id: 'dock-1/e1/2',
        ce_type: 'gantry.detections.v1',
        ce_time: large.capturedAt,
        'content-type': 'application/json',
        gantry_error: 'MESSAGE_TOO_LARGE',
        gantry_error_detail: expect.stringContaining('larger than the max') as string,
        gantry_original_topic: topic,
        gantry_value_bytes: String(Buffer.byteLength(JSON.stringify(large))),
      },
    })
    expect(letter?.headers).not.toHaveProperty('gantry_truncated')
  })

  it('R140: hold the beginning of a value that is too large for them, too', async () => {
    const deadLetter = await topicOf(18_000)
    const { told, deadLetters } = await secondRefused(deadLetter)
    expect(told).toMatchObject({ deadLetter })
    expect(await deadLetters()).toEqual({ written: 1 })
    const consumer = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }).consumer({
      groupId: deadLetter,
    })
    await consumer.connect()
    ended.push(() => consumer.disconnect())
    await consumer.subscribe({ topic: deadLetter, fromBeginning: true })
    const found = new Promise<{ bytes: number | undefined; truncated: string; type: string }>((resolve) => {
      void consumer.run({
        eachMessage: async ({ message: { value, headers } }) =>
          resolve({
            bytes: value?.length,
            truncated: String(headers?.['gantry_truncated']),
            type: String(headers?.['content-type']),
          }),
      })
    })
    expect(await found).toEqual({ bytes: 16_384, truncated: 'true', type: 'application/octet-stream' })
  })

  it.each([
    ['is not there', async () => ownTopic(), /there is no topic/],
    ['takes nothing', () => topicOf(100), /larger than the max/],
  ])('R141: leave the record out where their topic %s, and say so', async (_, makeTopic, why) => {
    const deadLetter = await makeTopic()
    const { told, rejected, deadLetters } = await secondRefused(deadLetter, { createTopics: false })
    expect(told).toMatchObject({ deadLetter, deadLetterFailure: expect.stringMatching(why) as string })
    expect(await deadLetters()).toEqual({ failed: 1 })
    expect(await rejected()).toEqual({ MESSAGE_TOO_LARGE: 1 })
  })

  it('are not, and make no topic, where they are switched off', async () => {
    const { told, deadLetters } = await secondRefused(false)
    expect(told).toMatchObject({ reason: 'MESSAGE_TOO_LARGE' })
    expect(told).not.toHaveProperty('deadLetter')
    expect(await deadLetters()).toEqual({})
  })

  it('R141: leave the record out where their topic is not ours to write', async () => {
    const broker = await KafkaBroker.start({
      properties: {
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'allow.everyone.if.no.acl.found': 'true',
      },
    })
    ended.push(() => broker.stop())
    const theirs = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).admin()
    await theirs.connect()
    const topic = await topicOf(6_000, theirs)
    const deadLetter = await topicOf(1_000_000, theirs)
    const rule = { principal: 'User:ANONYMOUS', host: '*', resourcePatternType: ResourcePatternTypes.LITERAL }
    await theirs.createAcls({
      acl: [
        {
          ...rule,
          resourceType: AclResourceTypes.TOPIC,
          resourceName: deadLetter,
          operation: AclOperationTypes.WRITE,
          permissionType: AclPermissionTypes.DENY,
        },
      ],
    })
    await theirs.disconnect()
    const { told, deadLetters } = await secondRefused(deadLetter, {}, { address: broker.address, topic })
    expect(told).toMatchObject({ deadLetter, deadLetterFailure: expect.any(String) as string })
    expect(await deadLetters()).toEqual({ failed: 1 })
  }, 120_000)
})

describe('DeadLetters', () => {
  const refusal = { reason: 'MESSAGE_TOO_LARGE', detail: 'too large', certain: true }

  it('R141: gives up a record that three connections could not bring there', async () => {
    const letters = new DeadLetters('dead')
    const post = { ensure: async () => true, produce: () => Promise.reject(new Error('no leader')) }
    const put = (id: string) => letters.put(post, queuedRecord(id), 'from', refusal)
    await expect(put('a1')).rejects.toThrow('no leader')
    await expect(put('a1')).rejects.toThrow('no leader')
    expect(await put('a1')).toEqual({ place: 'dead', failure: 'no leader' })
    await expect(put('a2')).rejects.toThrow('no leader')
  })

  it('looks once for a topic that is not there, and does not ask again for each record', async () => {
    const letters = new DeadLetters('dead')
    let asked = 0
    const post = { ensure: async () => (asked += 1) === 0, produce: async () => undefined }
    for (const id of ['a1', 'a2', 'a3'])
      expect(await letters.put(post, queuedRecord(id), 'from', refusal)).toMatchObject({
        failure: expect.stringContaining('there is no topic dead') as string,
      })
    expect(asked).toBe(1)
  })
})
