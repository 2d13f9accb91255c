/**
 * What befalls cameras that nodes share, by faults of real components: `npm run test:cluster -- [cameras] [seconds of SIGSTOP] [seconds of outages]`,
 * by default 24, 60 and 30. Prints a table measured from the topic of results, and ends with 1 where a bound is missed.
 */
import { clusterComplaints, clusterRounds } from './cluster-rounds.js'

const [cameras = 24, stopped = 60, outage = 30, slack = 1] = process.argv.slice(2).map(Number)
const lengths = { cameras, stoppedMs: stopped * 1_000, outageMs: outage * 1_000 }
const report = await clusterRounds(lengths, (text) => void process.stderr.write(`${text}\n`))
const columns = ['moved', 'longestGapMs', 'longestGapStayedMs', 'twoOwnersMs', 'repeated', 'results'] as const
process.stdout.write(
  '\n| fault | cameras moved | longest gap, ms | of those that stayed, ms | two owners at most, ms | repeated | results |\n',
)
process.stdout.write(`| --- |${' --- |'.repeat(columns.length)}\n`)
for (const row of report.rows)
  process.stdout.write(`| ${row.fault} | ${columns.map((column) => row[column]).join(' | ')} |\n`)
process.stdout.write(`${report.results} results\n`)
const complaints = clusterComplaints(report, slack * 1_000)
for (const complaint of complaints) process.stdout.write(`${complaint}\n`)
process.exitCode = complaints.length > 0 ? 1 : 0
