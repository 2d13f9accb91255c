import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { unstoredLimits } from '../../src/config/outputs.js'
import { storeBounds, storeSchema } from '../../src/config/store.js'
import { OutboxQueue } from '../../src/delivery/outbox-queue.js'
import { createStoreMetrics } from '../../src/metrics/store-metrics.js'
import { RecordStore } from '../../src/store/record-store.js'
import { silentLog } from '../support/silent-log.js'
import { residentBytes } from '../support/cpu.js'
import { detectionsMessage } from '../support/detections.js'
import { KafkaBroker } from '../support/kafka.js'
import { consumeAll } from '../support/kafka-records.js'
import { until } from '../support/until.js'
import { kafkaSink, ownTopic, type StoredQueue } from '../delivery/kafka/kafka-fixture.js'

export type OutageOptions = Readonly<{
  /** From the start of the sink to the start of its broker. */
  outageMs: number
  recordsPerSecond: number
  /** Records wait in memory alone, so many at most; otherwise in the store, as by default. */
  maxQueuedRecords?: number
}>

export type OutageReport = Readonly<{
  /** Until the sink had started and taken its first record, with no broker there. */
  startMs: number
  baseRssBytes: number
  /** While the broker was away. */
  mostRssBytes: number
  mostQueued: number
  accepted: number
  dropped: number
  delivered: number
  /** Records in the topic, repetitions included, and different ones among them. */
  stored: number
  storedOnce: number
  /** Records that are missing although none as old as they had to go. */
  missing: number
  /** Records delivered per second from the first to the end of the backlog, over those that came in that time. */
  drainRatio: number
}>

const feedEveryMs = 20
const cameras = 16

/** Runs a sink whose broker is away for long and then comes, and counts what becomes of the records. */
export async function brokerOutage(
  options: OutageOptions,
  progress: (text: string) => void,
): Promise<OutageReport> {
  const broker = await KafkaBroker.prepare()
  const { maxQueuedRecords } = options
  const topic = ownTopic()
  const stored = maxQueuedRecords === undefined ? await outbox() : undefined
  const bounds = maxQueuedRecords === undefined ? {} : { maxQueuedRecords }
  const { sink, accept } = kafkaSink(broker.address, topic, bounds, stored)
  const baseRssBytes = residentBytes(process.pid)
  const watched = { mostRssBytes: 0, mostQueued: 0, accepted: 0 }
  const beganMs = performance.now()
  const feedUpToNow = () => {
    const due = ((performance.now() - beganMs) / 1e3) * options.recordsPerSecond
    while (watched.accepted <= due) {
      const seq = (watched.accepted += 1)
      accept(detectionsMessage({ cameraId: `cam-${seq % cameras}`, seq }))
    }
    watched.mostQueued = Math.max(watched.mostQueued, sink.health.queued)
  }
  sink.start()
  feedUpToNow()
  const startMs = performance.now() - beganMs
  const feed = setInterval(feedUpToNow, feedEveryMs)
  try {
    await until(
      'the end of the outage',
      () => {
        watched.mostRssBytes = Math.max(watched.mostRssBytes, residentBytes(process.pid))
        const sinceMs = performance.now() - beganMs
        progress(
          `${Math.round(sinceMs / 1e3)} s, ${sink.health.queued} waiting, ${sink.health.dropped} dropped`,
        )
        return sinceMs >= options.outageMs
      },
      options.outageMs + 10_000,
      200,
    )
    await broker.start()
    const drainRatio = await drain(sink, () => watched.accepted)
    clearInterval(feed)
    feedUpToNow()
    // As the service stops: what was accepted is published before the sinks are asked for the last of it.
    await stored?.store.drain(20_000)
    await sink.stop(20_000)
    const inTopic = await idsIn(broker.address, topic, sink.health.delivered)
    const seqs = new Set(inTopic.map((id) => Number(id.split('/').at(-1))))
    // A batch under way while others go is older than they are.
    const oldestSure = stored ? 0 : sink.health.dropped + 500
    const missing = Array.from({ length: watched.accepted }, (_, index) => index + 1).filter(
      (seq) => seq > oldestSure && !seqs.has(seq),
    ).length
    const { dropped, delivered } = sink.health
    return {
      ...{ startMs, baseRssBytes, ...watched, dropped, delivered, missing, drainRatio },
      ...{ stored: inTopic.length, storedOnce: new Set(inTopic).size },
    }
  } finally {
    clearInterval(feed)
    await sink.stop(0)
    await stored?.store.stop()
    await broker.stop()
  }
}

/** A store of its own, and the queue of the sink over it. */
async function outbox(): Promise<StoredQueue> {
  const store = new RecordStore(
    {
      folder: mkdtempSync(join(tmpdir(), 'gantry-outage-')),
      epoch: 'e1',
      detections: 'outbox',
      sinks: ['kafka'],
      ...storeBounds(storeSchema.parse({})),
    },
    createStoreMetrics(new Registry()),
    silentLog(),
  )
  const queue = new OutboxQueue('kafka', store, unstoredLimits({}))
  store.onPlaces = ([place]) => place && queue.resume(place, store.newest)
  await store.start()
  return { store, queue }
}

/** @returns how many times faster than new ones come the waiting records go. */
async function drain(
  sink: Readonly<{ health: { delivered: number; queued: number } }>,
  accepted: () => number,
): Promise<number> {
  await until('the first delivery', () => sink.health.delivered > 0, 30_000, 5)
  const before = { atMs: performance.now(), delivered: sink.health.delivered, accepted: accepted() }
  await until('the end of the backlog', () => sink.health.queued < 500, 60_000, 5)
  return (sink.health.delivered - before.delivered) / Math.max(1, accepted() - before.accepted)
}

async function idsIn(address: string, topic: string, count: number): Promise<readonly string[]> {
  const consumer = await consumeAll(address, topic)
  try {
    return (await consumer.atLeast(count, 60_000)).map(({ headers }) => headers['ce_id'] ?? '')
  } finally {
    await consumer.stop()
  }
}
