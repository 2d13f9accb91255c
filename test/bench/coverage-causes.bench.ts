// How often the picture checks find what is wrong with clips that ffmpeg made worse, and what a look costs.
//   npx tsx test/bench/coverage-causes.bench.ts [--json] [clip.mp4 ...]
// Without clips: those of the demo. Each is played for 60 s, and is worse from 25 s to 45 s.
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { causesOf, confusionOf, coverageFaults, rawFrames } from '../support/coverage-clips.js'

const { values, positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true })
const demo = ['dock', 'gate', 'press-line', 'yard'].map((name) =>
  join(import.meta.dirname, `../../pipelines/demo/clips/${name}.mp4`),
)
const clips = positionals.length > 0 ? positionals : demo
const rows: { clip: string; fault: string; cause: string | null; seconds: Record<string, number> }[] = []
let [looks, lookMs] = [0, 0]
for (const clip of clips) {
  const frames = rawFrames(clip)
  for (const [fault, { cause, filter }] of Object.entries(coverageFaults)) {
    const played = await causesOf(frames, filter)
    looks += played.looks
    lookMs += played.lookMs
    rows.push({ clip: basename(clip), fault, cause, seconds: confusionOf(played, cause) })
    const { right = 0, wrong = 0, falseAlarms = 0, ...by } = rows.at(-1)?.seconds ?? {}
    if (!values.json)
      process.stdout.write(
        `${basename(clip).padEnd(30)} ${fault.padEnd(16)} ${String(cause).padEnd(10)} right ${right} wrong ${wrong} false ${falseAlarms} ${JSON.stringify(by)}\n`,
      )
  }
}
const sum = (key: string) => rows.reduce((total, { seconds }) => total + (seconds[key] ?? 0), 0)
const summary = {
  secondsWrong: sum('wrong'),
  secondsRight: sum('right'),
  rightShare: sum('right') / (sum('right') + sum('wrong')),
  falseAlarmSeconds: sum('falseAlarms'),
  msPerLook: lookMs / looks,
}
process.stdout.write(`${JSON.stringify(values.json ? { ...summary, rows } : summary)}\n`)
