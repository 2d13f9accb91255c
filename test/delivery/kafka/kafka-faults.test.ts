import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { KafkaConfig } from '../../../src/config/outputs.js'
import { detectionsMessageSchema } from '../../../src/messages/detections-message.js'
import { detectionsMessage } from '../../support/detections.js'
import { freePort } from '../../support/free-port.js'
import { KafkaBroker, kafkaMissing } from '../../support/kafka.js'
import { consumeAll } from '../../support/kafka-records.js'
import { TcpProxy } from '../../support/tcp-proxy.js'
import { until } from '../../support/until.js'
import { kafkaSink, ownTopic } from './kafka-fixture.js'

const missing = await kafkaMissing()
/** Of the broker; far more than its usual batches. */
const maxRequestBytes = 300_000

describe.skipIf(missing !== undefined)('The sink of Kafka behind a network that fails', () => {
  let broker: KafkaBroker
  let proxy: TcpProxy
  let address: string
  const ended: (() => Promise<unknown>)[] = []

  beforeAll(async () => {
    // Clients are sent back to the proxy, so that no connection goes around it.
    const advertisedPort = await freePort()
    const properties = { 'socket.request.max.bytes': String(maxRequestBytes) }
    broker = await KafkaBroker.prepare({ advertisedPort, properties })
    proxy = await TcpProxy.start(broker.port, advertisedPort)
    await broker.start()
    address = `127.0.0.1:${advertisedPort}`
  }, 120_000)
  afterEach(async () => {
    proxy.fault = { kind: 'none' }
    for (const end of ended.splice(0)) await end()
  })
  afterAll(async () => {
    await proxy.stop()
    await broker.stop()
  })

  /** Feeds a record every 5 ms while `trouble` goes on, then delivers the rest. @returns how many were accepted. */
  async function feedThrough(
    topic: string,
    trouble: (delivered: () => number) => Promise<void>,
    overrides: Partial<KafkaConfig> = {},
  ): Promise<number> {
    const { sink, accept } = kafkaSink(address, topic, { partitions: 2, ...overrides })
    ended.push(() => sink.stop(0))
    sink.start()
    let seq = 0
    const feed = setInterval(() => {
      seq += 1
      accept(detectionsMessage({ cameraId: `cam-${seq % 3}`, seq }))
    }, 5)
    try {
      await until('records flow', () => sink.health.delivered > 50)
      await trouble(() => sink.health.delivered)
    } finally {
      clearInterval(feed)
    }
    await sink.stop(20_000)
    expect(sink.health).toMatchObject({ delivered: seq, dropped: 0, queued: 0 })
    return seq
  }

  /** Delivery goes on within 5 s of the network's recovery. */
  async function resumes(delivered: () => number): Promise<void> {
    const before = delivered()
    const healedMs = performance.now()
    await until('delivery goes on', () => delivered() > before + 20)
    expect(performance.now() - healedMs).toBeLessThan(5_000)
  }

  it.each([
    ['connections are reset', 'reset', 0],
    ['nothing passes for 8 s, with connections open', 'black_hole', 8_000],
  ] as const)(
    'R13: loses nothing and resumes within 5 s when %s',
    async (_, kind, forMs) => {
      const topic = ownTopic()
      const accepted = await feedThrough(topic, async (delivered) => {
        const startMs = performance.now()
        proxy.fault = { kind }
        const stuckAt = delivered()
        await until('the trouble has lasted', () => performance.now() - startMs >= forMs + 500, 20_000)
        expect(delivered() - stuckAt).toBeLessThanOrEqual(500)
        proxy.fault = { kind: 'none' }
        await resumes(delivered)
      })
      const consumer = await consumeAll(address, topic)
      ended.push(consumer.stop)
      const records = await consumer.atLeast(accepted)
      expect(new Set(records.map(({ headers }) => headers['ce_id'])).size).toBe(accepted)
    },
    120_000,
  )

  it('R14: repeats records whose acknowledgement was lost, and the example consumer prints each once', async () => {
    const topic = ownTopic()
    // With producer ids the broker recognises most repetitions itself.
    const idempotent = { idempotent: false }
    const accepted = await feedThrough(
      topic,
      async (delivered) => {
        // The broker appends, and the answer never arrives.
        proxy.fault = { kind: 'cut_replies', afterBytes: 1 }
        await until('an answer was cut', () => proxy.cuts > 0)
        proxy.fault = { kind: 'none' }
        await resumes(delivered)
      },
      idempotent,
    )
    const consumer = await consumeAll(address, topic)
    ended.push(consumer.stop)
    const records = await consumer.atLeast(accepted + 1)
    const values = new Map(records.map(({ headers, value }) => [headers['ce_id'], value]))
    expect(values.size).toBe(accepted)
    expect(records.length).toBeGreaterThan(accepted)
    for (const { headers, value } of records) expect(value).toEqual(values.get(headers['ce_id']))

    const args = ['--brokers', address, '--topic', topic, '--group', `example-${topic}`]
    const example = spawn('node_modules/.bin/tsx', ['examples/consumers/consumer.ts', ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = new Promise((resolve) => example.once('exit', resolve))
    ended.push(() => (example.kill('SIGKILL'), exited))
    const printed: string[] = []
    createInterface(example.stdout).on('line', (line) => {
      const { cameraId, seq } = detectionsMessageSchema.parse(JSON.parse(line))
      printed.push(`${cameraId}/e1/${seq}`)
    })
    await until('the example printed all', () => printed.length >= accepted, 30_000)
    example.kill('SIGTERM')
    await exited
    expect(printed.sort()).toEqual([...values.keys()].sort())
  }, 120_000)

  it('R31: gives up a record that is damaged each time or for which connections are closed, and delivers the others', async () => {
    proxy.fault = { kind: 'damage', text: 'damaged-on-its-way' }
    const boxPx = { x1: 1, y1: 1, x2: 2, y2: 2 }
    const culprits = {
      CORRUPT_MESSAGE: { detections: [{ label: 'damaged-on-its-way', score: 0.5, boxPx }] },
      CONNECTION_CLOSED: { detections: [{ label: 'x'.repeat(maxRequestBytes), score: 0.5, boxPx }] },
    }
    await Promise.all(
      Object.entries(culprits).map(async ([reason, culprit]) => {
        const topic = ownTopic()
        const { sink, accept } = kafkaSink(address, topic, { compression: 'none', lingerMs: 200 })
        ended.push(() => sink.stop(0))
        sink.start()
        accept(detectionsMessage({ seq: 1, ...culprit }))
        accept(detectionsMessage({ seq: 2 }))
        accept(detectionsMessage({ cameraId: 'gate', seq: 3 }))
        await until(`the end of ${reason}`, () => sink.health.delivered + sink.health.dropped === 3, 60_000)
        expect(sink.health).toMatchObject({ state: 'up', delivered: 2, rejected: { [reason]: 1 } })
        const consumer = await consumeAll(broker.address, topic)
        ended.push(consumer.stop)
        // Some come twice, as a send that missed its deadline may have been taken.
        const ids = () => [...new Set(consumer.records.map(({ headers }) => headers['ce_id']))].sort()
        await until('both others', () => ids().length >= 2, 20_000)
        expect(ids()).toEqual(['dock-1/e1/2', 'gate/e1/3'])
      }),
    )
  }, 120_000)
})
