/**
 * The long run: `npm run soak -- [minutes] [cameras] [fps]`, by default 10 minutes of 8 cameras after 8 minutes of warming up: by
 * then the newest results that are kept have all been there once, and V8 has collected its old generation
 * (docs/benchmarks-history.md). Prints the report as JSON and ends with 1 if memory or file descriptors grow, a loop is late, or frames are not accounted for.
 */
import { soak } from './soak.js'

const [minutes = 10, cameras = 8, fps = 4] = process.argv.slice(2).map(Number)
const mostGrowthPerMinute = 1024 ** 2
const mostFdSpread = 5
const mostLoopP99Ms = 20
/** Of each camera; until they are all there, memory grows with them. */
const keptResults = 500

const report = await soak(
  { cameras, fps, warmUpMs: 480_000, runMs: minutes * 60_000, everyMs: 5_000 },
  (text) => process.stderr.write(`\r${text}   `),
)
process.stderr.write('\n')
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)

const { processes, loopP99Ms, frames, restarts, inferredBefore } = report
const complaints = [
  ...(inferredBefore < keptResults * cameras
    ? ['the machine is too busy to tell: results that are kept still came in']
    : []),
  ...processes
    .filter(({ rssBytesPerMinute }) => rssBytesPerMinute > mostGrowthPerMinute)
    .map(({ name }) => `memory of ${name} grows`),
  ...processes
    .filter(({ fewestFds, mostFds }) => mostFds - fewestFds > mostFdSpread)
    .map(({ name }) => `file descriptors of ${name} grow`),
  ...Object.entries(loopP99Ms)
    .filter(([, p99]) => p99 >= mostLoopP99Ms)
    .map(([name]) => `the loop of ${name} is late`),
  ...(frames.received - frames.ended > 2 * cameras ? ['frames are not accounted for'] : []),
  ...(restarts > 0 ? ['the engine was restarted'] : []),
]
for (const complaint of complaints) process.stderr.write(`${complaint}\n`)
process.exitCode = complaints.length > 0 ? 1 : 0
