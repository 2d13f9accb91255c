import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Kafka, logLevel, type Admin } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RecentIds } from '../../examples/consumers/recent-ids.js'
import { cloudEventHeaders, detectionsRecordId, eventTypes } from '../../src/messages/cloud-event.js'
import { detectionsMessageSchema } from '../../src/messages/detections-message.js'
import { detectionsMessage } from '../support/detections.js'
import { kafkaMissing, sharedKafka } from '../support/kafka.js'
import { pythonClients } from '../support/python-clients.js'
import { Hopeless, until } from '../support/until.js'
import { kafkaSink, ownTopic } from './kafka/kafka-fixture.js'

const missing = await kafkaMissing()
/** The least a broker allows by default. */
const sessionTimeoutMs = 6_000
const topic = ownTopic()
const group = `example-${topic}`
const printed = new Set<string>()
let broker: Awaited<ReturnType<typeof sharedKafka>>
let admin: Admin
const consumers: ChildProcess[] = []

beforeAll(async () => {
  if (missing !== undefined) return
  broker = await sharedKafka()
  admin = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
}, 120_000)
afterAll(async () => {
  for (const consumer of consumers) await ended(consumer, 'SIGKILL')
  await admin?.disconnect()
  await broker?.release()
})

/** The example as its README runs it, in one process, so that a signal reaches it. */
function startConsumer(): ChildProcess {
  const program = ['--import', 'tsx', 'examples/consumers/consumer.ts']
  const options = ['--topic', topic, '--group', group, '--session-timeout-ms', String(sessionTimeoutMs)]
  const consumer = spawn(process.execPath, [...program, '--brokers', broker.address, ...options], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  consumers.push(consumer)
  createInterface(consumer.stdout).on('line', (line) => {
    const { cameraId, seq } = detectionsMessageSchema.parse(JSON.parse(line))
    printed.add(`${cameraId}/${seq}`)
  })
  return consumer
}

async function ended(consumer: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (consumer.exitCode !== null || consumer.signalCode !== null) return
  const exit = once(consumer, 'exit')
  consumer.kill(signal)
  await exit
}

/** Waits until the group has settled on that many members. */
async function members(count: number): Promise<void> {
  const settled = async () => {
    const [described] = (await admin.describeGroups([group])).groups
    return described?.state === 'Stable' && described.members.length === count
  }
  await until(`${count} consumers share the topic`, settled, 40_000)
}

/** Records behind the last commit, over all partitions. */
async function lag(): Promise<number> {
  const [committed] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
  const ends = await admin.fetchTopicOffsets(topic)
  const committedAt = new Map(
    committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]),
  )
  return ends.reduce(
    (sum, { partition, high }) => sum + Number(high) - Math.max(0, committedAt.get(partition) ?? 0),
    0,
  )
}

it.skipIf(missing !== undefined)(
  'R16: consumers that hang, join, leave and are killed skip no result, and the rest is read within 30 s',
  async () => {
    const { sink, accept } = kafkaSink(broker.address, topic, { partitions: 4 })
    sink.start()
    const accepted = new Set<string>()
    const feed = setInterval(() => {
      const seq = accepted.size + 1
      const cameraId = `cam-${seq % 8}`
      accepted.add(`${cameraId}/${seq}`)
      accept(detectionsMessage({ cameraId, seq }))
    }, 10)
    /** Everything taken up to now gets printed, whoever has to. */
    const caughtUp = async () => {
      const wanted = [...accepted]
      await until('all of that is printed', () => wanted.every((id) => printed.has(id)), 40_000)
    }
    try {
      await until('records flow', () => sink.health.delivered > 20)
      const first = startConsumer()
      const second = startConsumer()
      await members(2)
      await caughtUp()

      first.kill('SIGSTOP')
      await members(1)
      await caughtUp()
      first.kill('SIGCONT')
      await members(2)

      const third = startConsumer()
      await members(3)
      await ended(second, 'SIGTERM')
      await members(2)
      await ended(third, 'SIGKILL')
      await members(1)
    } finally {
      clearInterval(feed)
      await sink.stop(20_000)
    }
    expect(sink.health).toMatchObject({ delivered: accepted.size, dropped: 0 })
    await until('nothing is left to read', async () => (await lag()) === 0, 30_000)
    await caughtUp()
    expect([...printed].sort()).toEqual([...accepted].sort())
  },
  240_000,
)

const examples = [
  {
    name: 'consumer.ts',
    command: process.execPath,
    program: ['--import', 'tsx', 'examples/consumers/consumer.ts'],
  },
  { name: 'consumer.py', command: pythonClients ?? '', program: ['examples/consumers/consumer.py'] },
]

describe.each(examples)('$name', ({ name, command, program }) => {
  it.skipIf(missing !== undefined || command === '')(
    'R124: prints each result once, though records come twice, and passes over what it does not know',
    async () => {
      const ownedTopic = ownTopic()
      await admin.createTopics({ topics: [{ topic: ownedTopic, numPartitions: 3 }], waitForLeaders: true })
      const record = (seq: number) => {
        const message = detectionsMessage({ cameraId: `cam-${seq % 5}`, seq })
        const id = detectionsRecordId('e1', 0, message)
        const headers = cloudEventHeaders({
          id,
          type: eventTypes.detections,
          cameraId: message.cameraId,
          time: message.capturedAt,
        })
        return { key: message.cameraId, value: JSON.stringify(message), headers }
      }
      const all = Array.from({ length: 300 }, (_, index) => record(index + 1))
      const unknown = { key: 'cam-1', value: '{}', headers: { ce_id: 'x', ce_type: 'gantry.weather.v1' } }
      const foreign = [unknown, { key: 'cam-2', value: 'no CloudEvent' }, { key: 'cam-3', value: null }]
      const producer = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).producer()
      await producer.connect()
      // At once, as a batch whose answer was lost is sent again; and much later.
      for (const records of [all.slice(0, 100), all.slice(0, 100), foreign, all.slice(100), all])
        await producer.send({ topic: ownedTopic, messages: records })
      const last = record(301)
      await producer.send({
        topic: ownedTopic,
        messages: [0, 1, 2].map((partition) => ({ ...last, partition })),
      })
      await producer.disconnect()

      const lines: string[] = []
      const consumer = spawn(
        command,
        [...program, '--brokers', broker.address, '--topic', ownedTopic, '--group', `${name}-${ownedTopic}`],
        { stdio: ['ignore', 'pipe', 'pipe'] },
      )
      consumers.push(consumer)
      let complaints = ''
      consumer.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
      createInterface(consumer.stdout).on('line', (line) => lines.push(line))
      const committed = async () => {
        if (consumer.exitCode !== null) throw new Hopeless(complaints)
        const [offsets] = await admin.fetchOffsets({ groupId: `${name}-${ownedTopic}`, topics: [ownedTopic] })
        const ends = await admin.fetchTopicOffsets(ownedTopic)
        const at = new Map(offsets?.partitions.map(({ partition, offset }) => [partition, offset]))
        return ends.every(({ partition, high }) => at.get(partition) === high)
      }
      await until('every record is read', committed, 60_000, 200)
      await ended(consumer, 'SIGTERM')
      const seqs = lines.map((line) => detectionsMessageSchema.parse(JSON.parse(line)).seq)
      expect([...seqs].sort((a, b) => a - b)).toEqual(Array.from({ length: 301 }, (_, index) => index + 1))
    },
    120_000,
  )
})

it('R124: what consumers remember is bounded, and the newest are kept', () => {
  const ids = new RecentIds(3)
  expect(['a', 'b', 'c', 'a', 'd', 'b', 'a'].map((id) => ids.add(id))).toEqual([
    true,
    true,
    true,
    false,
    true,
    false,
    true,
  ])
})
