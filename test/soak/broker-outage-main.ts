/**
 * The long outage: `npm run soak:broker -- [minutes] [records per second]`, by default 10 minutes at 240 records a second with the
 * store of the product. Prints the report as JSON and ends with 1 if there is something against it.
 */
import { brokerOutage } from './broker-outage.js'
import { outageComplaints } from './outage-complaints.js'

const [minutes = 10, recordsPerSecond = 240] = process.argv.slice(2).map(Number)

const report = await brokerOutage({ outageMs: minutes * 60_000, recordsPerSecond }, (text) =>
  process.stderr.write(`\r${text}   `),
)
process.stdout.write(`\n${JSON.stringify(report, null, 2)}\n`)
const complaints = outageComplaints(report, Infinity)
for (const complaint of complaints) process.stderr.write(`${complaint}\n`)
process.exitCode = complaints.length > 0 ? 1 : 0
