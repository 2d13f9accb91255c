// One run of a batch with a scorer that only reads the bytes, to be killed at any moment: node batch-child.mjs FOLDER OUT [VIDEO...]
import { createHash } from 'node:crypto'
import { runBatch } from '../../dist/tools/batch/run-batch.js'
import { outputTarget } from '../../dist/tools/batch/outputs/output-target.js'
import { createLog } from '../../dist/lifecycle/log.js'

const [folder, out, ...videos] = process.argv.slice(2)
const wait = () => new Promise((resolve) => setTimeout(resolve, Math.random() * 20))

let begun = false

const scorer = {
  info: { name: 'bytes:1', labels: ['a'], where: 'here', input: '', atOnce: 4 },
  async score(picture) {
    begun ||= process.stdout.write('begun\n')
    await wait()
    const bytes = picture.kind === 'file' ? picture.bytes : picture.rgbHwc
    const score = createHash('sha256').update(bytes).digest().readUInt32BE() / 2 ** 32
    const boxPx = { x1: 0, y1: 0, x2: 1, y2: 1 }
    return {
      size: { widthPx: 8, heightPx: 8 },
      detections: Array.from({ length: Math.floor(score * 4) }, () => ({ label: 'a', score, boxPx })),
      decodeMs: 0,
      inferMs: 0,
    }
  },
  stop: () => Promise.resolve(),
}

const summary = await runBatch({
  inputs: [folder, ...videos],
  target: outputTarget(out),
  out,
  stateDir: `${out}.batch`,
  errorsPath: `${out}.errors.jsonl`,
  restart: false,
  sampleFps: 5,
  parallel: undefined,
  patienceMs: 1_000,
  commitEveryMs: 60,
  settings: {},
  openScorer: () =>
    Promise.resolve({
      scorer,
      model: { name: 'bytes', version: '1' },
      inputPx: { widthPx: 64, heightPx: 64 },
      print: '0',
    }),
  deps: { stdin: process.stdin, s3: () => undefined },
  log: createLog({ level: 'warn', format: 'json' }, 'batch'),
  signal: new AbortController().signal,
  listed: () => undefined,
  progress: () => undefined,
})
if (!summary.complete) process.exit(3)
