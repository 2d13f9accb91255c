import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import type { DetectionsMessage } from '../../src/messages/detections-message.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { KafkaBroker } from '../support/kafka.js'
import { consumeAll } from '../support/kafka-records.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

export type KillReport = Readonly<{
  kills: number
  /** Records in the store: what was accepted. */
  accepted: number
  /** Results that a viewer was sent. */
  seen: number
  /** Accepted records, and results seen, that are not in the topic at the end. */
  missing: number
  seenMissing: number
  /** Records in the topic, and different ones among them by `ce_id` and by what they say. */
  delivered: number
  distinct: number
  distinctValues: number
  /** What SQLite's `integrity_check` says after each kill: the worst of it. */
  integrity: string
  /** Until it was ready again, beside the plain start before all kills. */
  plainStartMs: number
  slowestStartMs: number
}>

const cameras = 2
/** Every third kill finds a broker that has answered nothing for a while. */
const frozenEvery = 3

const nameOf = ({ cameraId, seq, capturedAt }: DetectionsMessage) => `${cameraId} ${seq} ${capturedAt}`

/** Kills the process that holds the records, again and again, at random moments, and counts what becomes of them. */
export async function killRounds(
  kills: number,
  progress: (text: string) => void,
  random: () => number = Math.random,
): Promise<KillReport> {
  const broker = await KafkaBroker.start()
  const rtsp = await rtspCameras(cameras)
  let service: TestService | undefined
  try {
    const pipeline = {
      cameras: Array.from({ length: cameras }, (_, index) => ({
        id: `cam-${index + 1}`,
        url: rtsp.url(`/cam${index + 1}`),
        sampleFps: 10,
      })),
      sinks: { kafka: { brokers: [broker.address] } },
      modelServer: { enabled: false },
    }
    service = await TestService.start({ pipeline })
    const { dir, startedInMs: plainStartMs } = service
    const seen = new Set<string>()
    let slowestStartMs = 0
    let integrity = 'ok'
    for (let kill = 1; kill <= kills; kill += 1) {
      const stream = await service.stream()
      await stream.detections('cam-1', 1)
      const isFrozen = kill % frozenEvery === 0
      if (isFrozen) broker.freeze()
      // Some results later, in the middle of whatever is under way.
      await stream.detections('cam-1', 1 + Math.floor(random() * 8))
      service.kill('SIGKILL')
      await service.exited()
      if (isFrozen) broker.resume()
      for (const message of stream.messages) if (message.type === 'detections') seen.add(nameOf(message))
      stream.close()
      const found = inFile(dir, (db) =>
        String(db.prepare('PRAGMA integrity_check').get()?.['integrity_check']),
      )
      if (found !== 'ok') integrity = found
      service = await TestService.start({ pipeline, like: service })
      slowestStartMs = Math.max(slowestStartMs, service.startedInMs)
      progress(`${kill} kills, ${seen.size} results seen, slowest start ${Math.round(slowestStartMs)} ms`)
    }
    const last = service
    await until('all is delivered', async () => (await last.readiness()).sinks[0]?.queued === 0, 60_000)
    service.kill('SIGTERM')
    await service.exited()
    const accepted = inFile(dir, (db) =>
      db
        .prepare("SELECT id FROM records WHERE type = 'gantry.detections.v1'")
        .all()
        .map(({ id }) => String(id)),
    )
    const consumer = await consumeAll(broker.address, 'gantry.detections.v1')
    // The newest of all may wait for the next start: those that came while it ended.
    const settled = inFile(dir, (db) => Number(db.prepare('SELECT settled FROM sinks').get()?.['settled']))
    const due = inFile(dir, (db) =>
      db
        .prepare("SELECT id FROM records WHERE type = 'gantry.detections.v1' AND position <= ?")
        .all(settled)
        .map(({ id }) => String(id)),
    )
    const ids = () => new Set(consumer.records.map(({ headers }) => headers['ce_id'] ?? ''))
    await until('the topic', () => ids().size >= new Set(due).size, 60_000).catch(() => undefined)
    await consumer.stop()
    const inTopic = ids()
    const names = new Set(consumer.records.map(({ value }) => nameOf(value as DetectionsMessage)))
    const waiting = new Set(accepted.filter((id) => !due.includes(id)))
    return {
      ...{ kills, plainStartMs, slowestStartMs, integrity },
      accepted: accepted.length,
      seen: seen.size,
      missing: accepted.filter((id) => !inTopic.has(id) && !waiting.has(id)).length,
      seenMissing: waiting.size > 0 ? 0 : [...seen].filter((name) => !names.has(name)).length,
      delivered: consumer.records.length,
      distinct: inTopic.size,
      distinctValues: names.size,
    }
  } finally {
    await service?.[Symbol.asyncDispose]()
    await rtsp.stop()
    await broker.stop()
  }
}

function inFile<T>(dir: string, work: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(join(dir, 'data', 'records.sqlite'))
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/** What a report has against the product, as sentences; none when all is well. */
export function killComplaints(report: KillReport): readonly string[] {
  const { missing, seenMissing, integrity, distinct, distinctValues, slowestStartMs, plainStartMs } = report
  const complaints: readonly (readonly [boolean, string])[] = [
    [missing > 0, `${missing} accepted records are neither in the store nor in the topic`],
    [seenMissing > 0, `${seenMissing} results that a viewer saw are not in the topic`],
    [integrity !== 'ok', `the file is damaged: ${integrity}`],
    [distinct !== distinctValues, `${distinct} ids are not ${distinctValues} results`],
    [slowestStartMs > Math.max(5_000, 2 * plainStartMs), `a start took ${Math.round(slowestStartMs)} ms`],
  ]
  return complaints.filter(([holds]) => holds).map(([, sentence]) => sentence)
}
