/**
 * What the delivery of results outlasts, by faults of real components: `npm run test:faults -- [kills] [minutes of outage] [faults of leaders]`,
 * by default 100, 10 and 30. Prints a table of fault, bound and what was measured, and ends with 1 where a bound is missed.
 */
import { spawnSync } from 'node:child_process'
import { brokerOutage } from '../soak/broker-outage.js'
import { outageComplaints } from '../soak/outage-complaints.js'
import { KafkaCluster } from '../support/kafka-cluster.js'
import { killComplaints, killRounds } from './kill-rounds.js'
import { leaderComplaints, type LeaderFault, leaderRounds } from './leader-rounds.js'

type Row = Readonly<{ fault: string; bound: string; measured: string; complaints: readonly string[] }>

const [kills = 100, minutes = 10, faults = 30] = process.argv.slice(2).map(Number)
const recordsPerSecond = 240
const mib = (bytes: number) => `${Math.round(bytes / 1024 ** 2)} MiB`
const progress = (text: string) => void process.stderr.write(`\r${text}    `)

/** Faults whose bounds a test of their own holds. */
const tested = [
  [
    'disk without room, and room again',
    'published; stored again by itself',
    'R110',
    'test/e2e/full-disk.test.ts',
  ],
  ['damaged file', 'moved aside; goes on', 'R111', 'test/store/record-store.test.ts'],
  ['clock an hour ahead and back', 'nothing repeats, times right', 'R6', 'test/e2e/clock-step.test.ts'],
  ['Redis frozen and dead', 'results as fast as before', 'R18', 'test/e2e/redis-outage.test.ts'],
  ['connections to brokers cut', 'in order, none lost', 'R13', 'test/delivery/kafka/kafka-faults.test.ts'],
] as const

async function killed(): Promise<Row> {
  const report = await killRounds(kills, progress)
  const { accepted, missing, seenMissing, delivered, distinct, integrity, slowestStartMs } = report
  return {
    fault: `${kills} kills of the process that holds records`,
    bound: '0 missing; one id each; file whole; restart <= 5 s',
    measured: `${accepted} accepted, ${missing + seenMissing} missing; ${delivered} delivered, ${distinct} ids; ${integrity}; ${Math.round(slowestStartMs)} ms`,
    complaints: killComplaints(report),
  }
}

async function outage(): Promise<Row> {
  const report = await brokerOutage({ outageMs: minutes * 60_000, recordsPerSecond }, progress)
  const { accepted, storedOnce, stored, baseRssBytes, mostRssBytes, drainRatio } = report
  return {
    fault: `broker away for ${minutes} minutes at ${recordsPerSecond} records/s`,
    bound: '0 lost; memory <= +50 MiB; drained >= 5x as fast as new ones come',
    measured: `${accepted} accepted, ${accepted - storedOnce} lost, ${stored - storedOnce} twice; +${mib(mostRssBytes - baseRssBytes)}; ${drainRatio.toFixed(1)}x`,
    complaints: outageComplaints(report, Infinity),
  }
}

async function leaders(): Promise<Row> {
  const cluster = await KafkaCluster.start()
  const kinds: readonly LeaderFault[] = ['kill', 'freeze', 'pause', 'kill']
  try {
    const inTurn = Array.from({ length: faults }, (_, index) => kinds[index % kinds.length] ?? 'kill')
    const report = await leaderRounds(cluster, inTurn, progress)
    const { accepted, missing, outOfOrder, repeated, repeatedElsewhere, slowestMs } = report
    return {
      fault: `${faults} leaders of three brokers killed, frozen, moved`,
      bound: '0 missing; in order; nothing again to brokers that had not failed',
      measured: `${accepted} accepted, ${missing} missing, ${outOfOrder} out of order; ${repeated} twice, ${repeatedElsewhere} elsewhere; delivered ${Math.round(slowestMs)} ms after others led`,
      complaints: leaderComplaints(report),
    }
  } finally {
    await cluster.stop()
  }
}

function testOf([fault, bound, id, file]: (typeof tested)[number]): Row {
  progress(`${fault}: ${file}`)
  const { status, stdout } = spawnSync('npx', ['vitest', 'run', file, '-t', `${id}:|${id},`], {
    encoding: 'utf8',
  })
  const complaints = status === 0 ? [] : [`${file} failed:\n${stdout}`]
  return { fault, bound, measured: status === 0 ? `holds (${id})` : 'missed', complaints }
}

const rows = [await killed(), await outage(), await leaders(), ...tested.map((test) => testOf(test))]
process.stdout.write('\n| fault | bound | measured |\n| --- | --- | --- |\n')
for (const { fault, bound, measured } of rows) process.stdout.write(`| ${fault} | ${bound} | ${measured} |\n`)
for (const { fault, complaints } of rows)
  for (const complaint of complaints) process.stdout.write(`${fault}: ${complaint}\n`)
process.exitCode = rows.some(({ complaints }) => complaints.length > 0) ? 1 : 0
