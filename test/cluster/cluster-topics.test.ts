import { type Admin, Kafka, logLevel } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkTopics } from '../../src/cluster/cluster-topics.js'
import { type ClusterConfig, clusterSchema } from '../../src/config/cluster.js'
import { kafkaMissing, sharedKafka } from '../support/kafka.js'
import { silentLog } from '../support/silent-log.js'
import { leadersOf } from '../support/topic-leaders.js'
import { until } from '../support/until.js'

const missing = await kafkaMissing()

describe.skipIf(missing !== undefined)('topics of a cluster', () => {
  let broker: Awaited<ReturnType<typeof sharedKafka>>
  let kafka: Kafka
  let admin: Admin
  let made = 0

  beforeAll(async () => {
    broker = await sharedKafka()
    kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING })
    admin = kafka.admin()
    await admin.connect()
  }, 120_000)

  afterAll(async () => {
    await admin.disconnect()
    await broker.release()
  })

  function config(more: object = {}): ClusterConfig {
    const cameras = `topics-${process.pid}-${(made += 1)}`
    return clusterSchema.parse({
      ...{ id: 'plant', slots: 8, topics: { cameras, cameraErrors: `${cameras}-errors` } },
      ...more,
    })
  }

  async function make({ topics: { cameras } }: ClusterConfig, policy: string, slots = 8): Promise<void> {
    const configEntries = [{ name: 'cleanup.policy', value: policy }]
    const topic = { topic: cameras, numPartitions: slots, configEntries }
    await admin.createTopics({ waitForLeaders: false, topics: [topic] })
    await leadersOf(admin, cameras)
  }

  it('are made where they are missing, and fit then', async () => {
    const wanted = config()
    await until('topics', () => checkTopics(kafka, wanted, silentLog()).then(() => true, () => false)) // prettier-ignore
    const { topics } = await admin.fetchTopicMetadata({ topics: Object.values(wanted.topics) })
    expect(topics.map(({ partitions: { length } }) => length).sort()).toEqual([1, 8])
  }, 60_000)

  it('are missed where they must not be made', async () => {
    const wanted = config({ createTopics: false })
    await expect(checkTopics(kafka, wanted, silentLog())).rejects.toMatchObject({
      code: 'GANTRY_CLUSTER_UNAVAILABLE',
      hint: expect.stringMatching(/8 partitions and cleanup\.policy=compact/) as string,
    })
  }, 60_000)

  it.each([
    ['R167: deletes what is old, which would forget cameras', 'delete', 8, /cleanup\.policy=delete/],
    ['R167: has another number of slots', 'compact', 4, /4 partitions, and cluster\.slots is 8/],
  ])(
    'are refused where that of the cameras %s',
    async (_, policy, slots, told) => {
      const wanted = config()
      await make(wanted, policy, slots)
      await expect(checkTopics(kafka, wanted, silentLog())).rejects.toMatchObject({
        code: 'GANTRY_CONFIG',
        message: expect.stringMatching(told) as string,
      })
    },
    60_000,
  )

  it.each(['compact', 'compact,delete'])(
    'are taken with cleanup.policy=%s',
    async (policy) => {
      const wanted = config()
      await make(wanted, policy)
      await checkTopics(kafka, wanted, silentLog())
    },
    60_000,
  )
})
