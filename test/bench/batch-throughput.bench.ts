/**
 * Pictures per second of `gantry batch` on a folder, against bare ONNX Runtime with sharp on the same folder (bare-folder.mjs), in
 * alternating rounds. Reading and decoding count on both sides; loading the model on neither. Batch also writes its output. Prints one
 * JSON line.
 *
 *   npm run build:server && npx tsx test/bench/batch-throughput.bench.ts [ROUNDS] [PICTURES] [FOLDER]
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { dockClip } from '../support/demo-cameras.js'
import { mainScript } from '../support/gantry-process.js'
import { ffmpegRun } from '../support/video-clips.js'
import { medianOf, report, undisturbed } from './bench.js'

const root = join(import.meta.dirname, '../..')
const model = join(root, 'models/ppe_detect_video/1/model.onnx')
const [rounds = 7, pictures = 300] = process.argv.slice(2, 4).map(Number)
const dir = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
const folder = process.argv[4] ?? join(dir, 'pictures')

type Round = Readonly<{ pictures: number; seconds: number }>
const rate = ({ pictures: count, seconds }: Round) => count / seconds

async function printed(args: readonly string[]): Promise<Record<string, number>> {
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as Record<string, number>
}

const bare = async (): Promise<Round> => {
  const { pictures: count = 0, seconds = 0 } = await printed([
    join(root, 'test/bench/bare-folder.mjs'),
    ...[model, '800', '448', folder],
  ])
  return { pictures: count, seconds }
}

const batch = async (): Promise<Round> => {
  const out = join(dir, 'out.jsonl')
  const args = [mainScript, 'batch', folder, '--out', out, '--restart', '--json', '--model', 'ppe']
  const { scored = 0, seconds = 0 } = await printed(args)
  return { pictures: scored, seconds }
}

try {
  if (process.argv[4] === undefined) {
    mkdirSync(folder)
    const frames = ['-stream_loop', '-1', '-i', dockClip, '-frames:v', String(pictures), '-q:v', '3']
    await ffmpegRun(...frames, join(folder, '%05d.jpg'))
  }
  const ratios: number[] = []
  const rates = { bare: [] as number[], batch: [] as number[] }
  for (let round = 0; round < rounds; round += 1) {
    const first = round % 2 === 0
    const [a, b] = await undisturbed(async () => [
      await (first ? bare() : batch()),
      await (first ? batch() : bare()),
    ])
    const [ofBare, ofBatch] = first ? [a, b] : [b, a]
    rates.bare.push(rate(ofBare))
    rates.batch.push(rate(ofBatch))
    ratios.push(rate(ofBatch) / rate(ofBare))
  }
  const { median, interval } = medianOf(ratios)
  report('batch-throughput', 'pictures/s', {
    bare: medianOf(rates.bare).median,
    batch: medianOf(rates.batch).median,
    ratio: median,
    interval,
    rounds,
    pictures: readdirSync(folder).length,
    load: loadavg()[0] ?? 0,
  })
} finally {
  rmSync(dir, { recursive: true, force: true })
}
