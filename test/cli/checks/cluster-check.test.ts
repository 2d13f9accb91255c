import { Kafka, logLevel } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkCluster } from '../../../src/cli/checks/cluster-check.js'
import { clusterSchema } from '../../../src/config/cluster.js'
import { pipelineSchema } from '../../../src/config/pipeline.js'
import { freePort } from '../../support/free-port.js'
import { kafkaMissing, sharedKafka } from '../../support/kafka.js'
import { leadersOf } from '../../support/topic-leaders.js'

function parsed(brokers: readonly string[], more: object = {}, host = '127.0.0.1') {
  const cluster = clusterSchema.parse({ id: 'plant', node: 'a', kafka: { brokers }, slots: 8, ...more })
  const { server, sinks } = pipelineSchema.parse({
    apiVersion: 'gantry/v1',
    server: { host, token: 'a-token-of-sixteen' },
  })
  return [{ server, sinks }, cluster] as const
}

describe('checkCluster', () => {
  it('asks nothing offline, and says that other machines do not reach loopback', async () => {
    expect(await checkCluster(...parsed(['192.0.2.1:9092']), false)).toEqual([
      expect.objectContaining({
        subject: 'cluster plant',
        state: 'warning',
        fix: expect.stringMatching(/server\.host: 0\.0\.0\.0/) as string,
      }),
      { subject: 'cluster plant', state: 'skipped', detail: 'offline' },
    ])
    for (const settings of [
      parsed(['192.0.2.1:9092'], {}, '0.0.0.0'),
      parsed(['192.0.2.1:9092'], { url: 'https://a.example' }),
    ])
      expect(await checkCluster(...settings, false)).toHaveLength(1)
  })

  it('names the setting of brokers that do not answer', async () => {
    const findings = await checkCluster(...parsed([`127.0.0.1:${await freePort()}`], {}, '0.0.0.0'), true)
    expect(findings).toEqual([
      expect.objectContaining({
        state: 'failed',
        fix: expect.stringMatching(/cluster\.kafka\.brokers/) as string,
      }),
    ])
  }, 30_000)
})

describe.skipIf((await kafkaMissing()) !== undefined)('checkCluster, with a broker', () => {
  let broker: Awaited<ReturnType<typeof sharedKafka>>
  let made = 0

  beforeAll(async () => {
    broker = await sharedKafka()
  }, 120_000)
  afterAll(() => broker.release())

  const topics = () => {
    const cameras = `check-${process.pid}-${(made += 1)}`
    return { cameras, cameraErrors: `${cameras}-errors` }
  }

  it('says which topics are missing, and whether they will be made', async () => {
    const asked = (more: object) => checkCluster(...parsed([broker.address], more, '0.0.0.0'), true)
    expect(await asked({ topics: topics() })).toEqual([
      expect.objectContaining({
        state: 'ok',
        detail: expect.stringMatching(/created at the start/) as string,
      }),
    ])
    expect(await asked({ topics: topics(), createTopics: false })).toEqual([
      expect.objectContaining({
        state: 'failed',
        fix: expect.stringMatching(/cluster\.createTopics/) as string,
      }),
    ])
  }, 30_000)

  it.each([
    ['another number of slots', 'compact', 4, /cluster\.slots: 4/],
    ['a policy that forgets cameras', 'delete', 8, /cleanup\.policy=compact/],
  ])(
    'finds a topic with %s',
    async (_, policy, numPartitions, fix) => {
      const names = topics()
      const admin = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).admin()
      await admin.connect()
      const configEntries = [{ name: 'cleanup.policy', value: policy }]
      await admin.createTopics({
        waitForLeaders: false,
        topics: [{ topic: names.cameras, numPartitions, configEntries }],
      })
      await leadersOf(admin, names.cameras)
      await admin.disconnect()
      const findings = await checkCluster(...parsed([broker.address], { topics: names }, '0.0.0.0'), true)
      expect(findings).toEqual([
        expect.objectContaining({ state: 'failed', fix: expect.stringMatching(fix) as string }),
      ])
    },
    30_000,
  )
})
