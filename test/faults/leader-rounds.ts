import type { KafkaConfig } from '../../src/config/outputs.js'
import { detectionsMessageSchema } from '../../src/messages/detections-message.js'
import { detectionsMessage } from '../support/detections.js'
import type { KafkaCluster } from '../support/kafka-cluster.js'
import { consumeAll, type ReceivedRecord } from '../support/kafka-records.js'
import { until } from '../support/until.js'
import { kafkaSink, ownTopic } from '../delivery/kafka/kafka-fixture.js'

/**
 * What befalls a broker: killed and started again once others lead in its place; frozen as long; frozen for less than the others take to
 * notice; its partitions are given to others while all are well. After each of them they are given back to it, so that leaders move once
 * more.
 */
export type LeaderFault = 'kill' | 'freeze' | 'pause' | 'move'

export type LeaderReport = Readonly<{
  faults: number
  accepted: number
  delivered: number
  dropped: number
  /** Records that are not in the topic. */
  missing: number
  /** Records that come before an older one of their camera, where repetitions do not count. */
  outOfOrder: number
  /** Records that say something else, or are in another partition, than others with their id. */
  changed: number
  /** Records beyond the first with an id; those of a fault in partitions that another broker led before it and after it. */
  repeated: number
  repeatedElsewhere: number
  /** Longest until all that was accepted before others led was delivered; from then on. */
  slowestMs: number
}>

const cameras = 12
const feedEveryMs = 5
const pauseMs = 1_500

type Round = Readonly<{ firstSeq: number; lastSeq: number; others: ReadonlySet<number> }>

/**
 * Sends records of many cameras to a cluster whose brokers fail in turn, and counts what becomes of them.
 *
 * @param endsInFault - nothing is sent any more when the last broker comes back, so that nothing moves but what it led.
 */
export async function leaderRounds(
  cluster: KafkaCluster,
  faults: readonly LeaderFault[],
  progress: (text: string) => void,
  overrides: Partial<KafkaConfig> = {},
  endsInFault = false,
): Promise<LeaderReport> {
  const topic = ownTopic()
  const { sink, accept } = kafkaSink(cluster.broker(1).address, topic, {
    brokers: cluster.addresses,
    partitions: 6,
    // For as long as brokers take that are slow; what is measured is whether any goes missing by them.
    maxQueuedRecords: 200_000,
    maxQueuedBytes: 1024 ** 3,
    ...overrides,
  })
  let accepted = 0
  const feed = setInterval(() => {
    accepted += 1
    accept(detectionsMessage({ cameraId: `cam-${accepted % cameras}`, seq: accepted }))
  }, feedEveryMs)
  const rounds: Round[] = []
  let slowestMs = 0
  try {
    sink.start()
    await until('records flow', () => sink.health.delivered > 50, 30_000)
    for (const [index, fault] of faults.entries()) {
      const leaders = await cluster.allLead(topic)
      const id = (index % cluster.brokers.length) + 1
      // What is sent while leaders are given their places may be sent twice for that.
      const settled = accepted
      await until('leaders have their places', () => sink.health.delivered >= settled, 90_000)
      const firstSeq = accepted - sink.health.queued + 1
      await befall(cluster, id, fault, topic, leaders)
      const movedMs = performance.now()
      const before = accepted
      await until('all of before is delivered', () => sink.health.delivered >= before, 90_000)
      slowestMs = Math.max(slowestMs, performance.now() - movedMs)
      const now = await cluster.leaders(topic, fault === 'freeze' || fault === 'kill' ? [id] : [])
      // On a machine that is slow the others, too, can be taken for dead.
      const others = [...leaders].flatMap(([partition, leader]) =>
        leader === id || leader !== now.get(partition) ? [] : [partition],
      )
      rounds.push({ firstSeq, lastSeq: accepted, others: new Set(others) })
      if (endsInFault && index === faults.length - 1) {
        clearInterval(feed)
        await sink.stop(60_000)
      }
      if (fault === 'move') await cluster.prefer(topic, leaders)
      else await recover(cluster, id, fault)
      progress(`${index + 1} faults, ${accepted} accepted, slowest ${Math.round(slowestMs)} ms`)
    }
    // Leaders move once more.
    await cluster.allLead(topic)
    clearInterval(feed)
    await sink.stop(60_000)
    const { delivered, dropped } = sink.health
    const records = await recordsOf(cluster, topic, accepted)
    const counts = { accepted, delivered, dropped, faults: faults.length, slowestMs }
    return { ...counts, ...inspected(records, accepted, rounds) }
  } finally {
    clearInterval(feed)
    await sink.stop(0)
  }
}

async function befall(
  cluster: KafkaCluster,
  id: number,
  fault: LeaderFault,
  topic: string,
  leaders: ReadonlyMap<number, number>,
): Promise<void> {
  const broker = cluster.broker(id)
  if (fault === 'move') {
    const next = (id % cluster.brokers.length) + 1
    const moved = [...leaders].flatMap(([partition, leader]) =>
      leader === id ? [[partition, next] as const] : [],
    )
    await cluster.prefer(topic, new Map(moved))
  } else if (fault === 'kill') await broker.kill()
  else broker.freeze()
  if (fault !== 'pause') return cluster.leadsNothing(id, topic)
  const startMs = performance.now()
  await until('the pause', () => performance.now() - startMs > pauseMs)
  broker.resume()
}

async function recover(
  cluster: KafkaCluster,
  id: number,
  fault: Exclude<LeaderFault, 'move'>,
): Promise<void> {
  const broker = cluster.broker(id)
  if (fault === 'kill') await broker.start()
  else broker.resume()
  await broker.answers()
}

async function recordsOf(
  cluster: KafkaCluster,
  topic: string,
  accepted: number,
): Promise<readonly ReceivedRecord[]> {
  const consumer = await consumeAll(cluster.broker(1).address, topic)
  try {
    const ids = () => new Set(consumer.records.map(({ headers }) => headers['ce_id'])).size
    await until('the topic', () => ids() >= accepted, 60_000).catch(() => undefined)
    return consumer.records
  } finally {
    await consumer.stop()
  }
}

function inspected(records: readonly ReceivedRecord[], accepted: number, rounds: readonly Round[]) {
  const firsts = new Map<string, ReceivedRecord>()
  const newest = new Map<string, number>()
  let [outOfOrder, changed, repeatedElsewhere] = [0, 0, 0]
  for (const record of records) {
    const { seq, cameraId } = detectionsMessageSchema.parse(record.value)
    const id = record.headers['ce_id'] ?? ''
    const first = firsts.get(id)
    if (first === undefined) {
      firsts.set(id, record)
      if (seq < (newest.get(cameraId) ?? 0)) outOfOrder += 1
      newest.set(cameraId, Math.max(seq, newest.get(cameraId) ?? 0))
      continue
    }
    const isSame = JSON.stringify(first.value) === JSON.stringify(record.value)
    if (!isSame || first.partition !== record.partition) changed += 1
    const round = rounds.find(({ firstSeq, lastSeq }) => seq >= firstSeq && seq <= lastSeq)
    if (round?.others.has(record.partition)) repeatedElsewhere += 1
  }
  const missing = accepted - firsts.size
  return { missing, outOfOrder, changed, repeated: records.length - firsts.size, repeatedElsewhere }
}

/** What a report has against the product, as sentences; none when all is well. */
export function leaderComplaints(report: LeaderReport): readonly string[] {
  const { accepted, delivered, dropped, missing, outOfOrder, changed, slowestMs } = report
  const complaints: readonly (readonly [boolean, string])[] = [
    [missing > 0, `${missing} of ${accepted} records are missing in the topic`],
    [delivered !== accepted || dropped > 0, `${delivered} delivered and ${dropped} dropped of ${accepted}`],
    [outOfOrder > 0, `${outOfOrder} records came before an older one of their camera`],
    [changed > 0, `${changed} records differ from others with their id`],
    [slowestMs > 60_000, `all was delivered only ${Math.round(slowestMs)} ms after others led`],
  ]
  return complaints.filter(([holds]) => holds).map(([, sentence]) => sentence)
}
