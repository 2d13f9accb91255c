import type { OutageReport } from './broker-outage.js'

const mostGrowthBytes = 50 * 1024 ** 2
const mostStartMs = 5_000
const leastDrainRatio = 5
const mostRepeated = 0.01
/** A batch under way is not in the queue. */
const batchRecords = 500

/** What the report has against the product, as sentences; none when all is well. @param maxQueuedRecords - Infinity: in the store. */
export function outageComplaints(report: OutageReport, maxQueuedRecords: number): readonly string[] {
  const { accepted, delivered, dropped, stored, storedOnce, missing } = report
  const growthMib = Math.round((report.mostRssBytes - report.baseRssBytes) / 1024 ** 2)
  const complaints: readonly (readonly [boolean, string])[] = [
    [report.startMs > mostStartMs, `it took ${report.startMs} ms to start`],
    [growthMib * 1024 ** 2 > mostGrowthBytes, `memory grew by ${growthMib} MiB`],
    [report.mostQueued > maxQueuedRecords + batchRecords, `${report.mostQueued} records waited`],
    [accepted !== delivered + dropped, `${accepted} are not ${delivered} delivered and ${dropped} dropped`],
    [storedOnce < delivered, `${delivered - storedOnce} acknowledged records are lost`],
    [missing > 0, `${missing} records went although older ones were kept`],
    [maxQueuedRecords === Infinity && dropped > 0, `${dropped} records were dropped`],
    [stored - storedOnce > mostRepeated * storedOnce, `${stored - storedOnce} records came twice`],
    [
      report.drainRatio < leastDrainRatio,
      `the backlog went only ${report.drainRatio} times as fast as new came`,
    ],
  ]
  return complaints.filter(([holds]) => holds).map(([, sentence]) => sentence)
}
