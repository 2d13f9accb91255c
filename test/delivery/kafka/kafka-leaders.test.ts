import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { detectionsMessage } from '../../support/detections.js'
import { until } from '../../support/until.js'
import { kafkaSink, ownTopic } from './kafka-fixture.js'
import { leaderComplaints, leaderRounds } from '../../faults/leader-rounds.js'
import { kafkaSchema } from '../../../src/config/outputs.js'
import { KafkaClients } from '../../../src/delivery/kafka/kafka-client.js'
import { LeaderWatch } from '../../../src/delivery/kafka/leader-watch.js'
import { silentLog } from '../../support/silent-log.js'
import { kafkaMissing } from '../../support/kafka.js'
import { KafkaCluster } from '../../support/kafka-cluster.js'

const missing = await kafkaMissing()

/** The short form; `npm run test:faults` is the long one. */
describe.skipIf(missing !== undefined)('The sink of Kafka and three brokers that fail in turn', () => {
  let cluster: KafkaCluster
  beforeAll(async () => {
    cluster = await KafkaCluster.start()
  }, 240_000)
  afterAll(() => cluster?.stop())

  it('R137: loses nothing and keeps the order of each camera while leaders are killed, freeze and move', async () => {
    const report = await leaderRounds(cluster, ['move', 'kill', 'freeze', 'pause'], () => undefined)
    process.stderr.write(`R137: ${JSON.stringify(report)}\n`)
    expect(leaderComplaints(report)).toEqual([])
  }, 300_000)

  it('R138: sends what one broker has not acknowledged to that one again, and to no other', async () => {
    // With producer ids brokers recognise most repetitions themselves.
    const report = await leaderRounds(cluster, ['kill'], () => undefined, { idempotent: false }, true)
    process.stderr.write(`R138: ${JSON.stringify(report)}\n`)
    expect(leaderComplaints(report)).toEqual([])
    expect(report.repeatedElsewhere).toBe(0)
  }, 300_000)

  it('R159: finds out that one which stands still leads no more, and so needs not wait for its answer', async () => {
    const topic = ownTopic()
    const { sink, accept } = kafkaSink(cluster.broker(1).address, topic, { partitions: 3 })
    sink.start()
    accept(detectionsMessage({ seq: 1 }))
    await until('the topic is there', () => sink.health.delivered === 1, 60_000)
    await sink.stop(5_000)
    const before = await cluster.allLead(topic)
    const [partition] = [...before].find(([, leader]) => leader === 2) ?? []
    const config = kafkaSchema.parse({ brokers: cluster.addresses })
    const watch = new LeaderWatch(new KafkaClients(config, silentLog()))
    const ended = new AbortController()
    const led = { topic, partition: partition ?? -1, leader: 2 }
    const moved = watch.moved([led], ended.signal)
    cluster.broker(2).freeze()
    try {
      expect(await moved).toBe(
        `no acknowledgement of broker 2, and ${topic} ${partition} has another leader now`,
      )
    } finally {
      cluster.broker(2).resume()
    }
    const told = watch.moved([led], ended.signal)
    ended.abort()
    expect(await told).toBeUndefined()
  }, 180_000)

  it('R139: asks another broker where the first one accepts connections and never answers', async () => {
    const topic = ownTopic()
    const first = kafkaSink(cluster.broker(1).address, topic, { brokers: cluster.addresses })
    first.sink.start()
    first.accept(detectionsMessage({ seq: 1 }))
    await until('the topic is there', () => first.sink.health.delivered === 1, 60_000)
    await first.sink.stop(5_000)
    cluster.broker(1).freeze()
    try {
      await cluster.leadsNothing(1, topic)
      const { sink, accept } = kafkaSink(cluster.broker(1).address, topic, { brokers: cluster.addresses })
      sink.start()
      accept(detectionsMessage({ seq: 2 }))
      await until('delivery', () => sink.health.delivered === 1, 60_000)
      await sink.stop(5_000)
    } finally {
      cluster.broker(1).resume()
    }
  }, 180_000)
})
