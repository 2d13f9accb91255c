import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TopicPast } from '../../src/cluster/topic-past.js'
import { kafkaSchema } from '../../src/config/outputs.js'
import type { PastResult } from '../../src/delivery/websocket/shared-replay.js'
import { kafkaSink, ownTopic } from '../delivery/kafka/kafka-fixture.js'
import { detectionsMessage } from '../support/detections.js'
import { freePort } from '../support/free-port.js'
import { KafkaBroker, kafkaMissing } from '../support/kafka.js'
import { recordingLog } from '../support/silent-log.js'
import { until } from '../support/until.js'

const missing = await kafkaMissing()
const never = new AbortController().signal
const live = Promise.resolve()

describe.skipIf(missing !== undefined)('the topic of results as the past of the stream', () => {
  let broker: KafkaBroker
  beforeAll(async () => {
    broker = await KafkaBroker.start()
  }, 120_000)
  afterAll(() => broker.stop())

  function pastOf(topic: string, address = broker.address) {
    const { log, lines } = recordingLog()
    const config = kafkaSchema.parse({ brokers: [address], topics: { detections: topic } })
    return { past: new TopicPast(config, 'gantry.test.stream', log), lines }
  }

  /** So many results of three cameras, in three partitions. */
  async function delivered(topic: string, count: number, firstSeq = 1) {
    const { sink, accept } = kafkaSink(broker.address, topic, { partitions: 3 })
    sink.start()
    for (let seq = firstSeq; seq < firstSeq + count; seq += 1)
      for (const cameraId of ['a', 'b', 'c']) accept(detectionsMessage({ cameraId, seq }))
    await until('delivery', () => sink.health.delivered === 3 * count, 60_000)
    await sink.stop(5_000)
  }

  const keyOf = ({ json }: PastResult) => {
    const { cameraId, seq } = JSON.parse(json.toString()) as { cameraId: string; seq: number }
    return `${cameraId}${seq}`
  }

  it('R173: reads on from a time, each camera in order, and says until when it has read all', async () => {
    const topic = ownTopic()
    await delivered(topic, 40)
    const { past } = pastOf(topic)
    const all: PastResult[] = []
    const take = async (result: PastResult) => void all.push(result)
    const isWhole = await past.read(Date.now() - 60_000, take, live, never)
    expect(isWhole).toBe(true)
    expect(all).toHaveLength(120)
    for (const camera of ['a', 'b', 'c']) {
      const seqs = all.filter(({ cameraId }) => cameraId === camera).map(keyOf)
      expect(seqs).toEqual(Array.from({ length: 40 }, (_, index) => `${camera}${index + 1}`))
    }
    const times = all.map(({ completeMs }) => completeMs)
    expect(times).toEqual([...times].sort((one, other) => one - other))
    // From later than anything is there.
    const none: PastResult[] = []
    expect(await past.read(Date.now() + 60_000, async (result) => void none.push(result), live, never)).toBe(
      true,
    )
    expect(none).toEqual([])
  }, 120_000)

  it('serves those who come together by one reading, and keeps nobody waiting for one who takes nothing', async () => {
    const topic = ownTopic()
    await delivered(topic, 20)
    const { past } = pastOf(topic)
    const taken: string[][] = [[], []]
    const reads = taken.map((keys) =>
      past.read(Date.now() - 60_000, async (result) => void keys.push(keyOf(result)), live, never),
    )
    const stuck = past.read(Date.now() - 60_000, () => new Promise(() => undefined), live, never)
    expect(await Promise.all(reads)).toEqual([true, true])
    expect(await stuck).toBe(false)
    expect(taken.map((keys) => keys.length)).toEqual([60, 60])
  }, 120_000)

  it('R173: says that some may be missing where the brokers are away, or the topic', async () => {
    const away = pastOf(ownTopic(), `127.0.0.1:${await freePort()}`)
    expect(await away.past.read(Date.now(), async () => undefined, live, never)).toBe(false)
    expect(new Set(away.lines.map(({ msg }) => msg))).toEqual(
      new Set(['the past of the stream cannot be read from its topic']),
    )
    const absent = pastOf(ownTopic())
    expect(await absent.past.read(Date.now(), async () => undefined, live, never)).toBe(false)
  }, 120_000)
})
