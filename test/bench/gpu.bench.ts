/**
 * What a GPU gives, and what is made of it: `npm run bench:gpu -- [PART...]`
 *
 *     ceilings    bare sessions, and one frame at a time
 *     scheduler   the cameras' way, saturated, beside bare sessions in turn
 *     service     cameras by RTSP, the most of them, decoding on the card
 *     server      clients of the model server, HTTP and gRPC
 *     faults      a killed engine, a full card, one that is not there
 *
 * Without a part all of them, the most wanted first; each has a limit of time (`partSeconds`), 12 minutes in all. Every measurement is a
 * line of JSON, written when it is known, and what stands is not taken again: a run that was cut off, or had too little time, goes on
 * where it ended. At the end the results are a table as docs/benchmarks.md has it. Without a card it says so and ends.
 *
 *     --out FILE       the results; default gantry-bench-gpu.jsonl in the temporary folder. Those of another card stay apart in it
 *     --again          take what stands again
 *     --table          print the table of what stands, and measure nothing
 *     --provider NAME  cuda (default) or tensorrt
 *     --device N       number of the card
 *     --cpu            small sizes on the CPU, to see that each part runs to its end; the figures say nothing
 *     --python FILE    Python with onnxruntime-gpu, for data that stay on the card (default python3; left out where it has none)
 *     --clip FILE      a clip of 1920x1080, H.264; default gantry-bench-1080p.mp4 beside the results, made by ffmpeg with libx264
 *
 * Where there is no compiler, `npx tsx test/bench/gpu.bench.ts` runs with the `dist/` that is there.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { missingProviderReason } from '../../src/backends/onnxruntime/providers.js'
import type { ExecutionProvider } from '../../src/config/inference.js'
import type { Figures } from './bench.js'
import { cardText, CardWatch } from './gpu/card.js'
import type { Context } from './gpu/measure.js'
import { Measurer } from './gpu/measurer.js'
import { makeGpuRepository } from './gpu/models.js'
import { jobsOf, nameOf, type Part, parts, partSeconds, placesOf } from './gpu/plan.js'
import { cardsIn, type Line, Results } from './gpu/results.js'
import { tableOf } from './gpu/table.js'

const { values, positionals } = argumentsOf()

function argumentsOf() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        out: { type: 'string' },
        again: { type: 'boolean', default: false },
        table: { type: 'boolean', default: false },
        provider: { type: 'string', default: 'cuda' },
        device: { type: 'string', default: '0' },
        cpu: { type: 'boolean', default: false },
        python: { type: 'string', default: 'python3' },
        clip: { type: 'string' },
      },
    })
  } catch (error) {
    return usage(error instanceof Error ? error.message : String(error))
  }
}

function usage(problem: string): never {
  note(problem)
  note(
    `usage: npm run bench:gpu -- [${parts.join('|')}]... [--out FILE] [--again] [--table] [--provider cuda|tensorrt] [--device N] [--cpu]`,
  )
  process.exit(2)
}

function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

const isPart = (text: string): text is Part => (parts as readonly string[]).includes(text)
const isGpuProvider = (text: string): text is 'cuda' | 'tensorrt' => text === 'cuda' || text === 'tensorrt'

/** What is measured on, or why nothing can be. */
async function whatOn(
  provider: ExecutionProvider,
  deviceId: number,
): Promise<Readonly<{ card: string } | { missing: string }>> {
  if (provider === 'cpu') return { card: 'CPU, small sizes' }
  const card = await cardText(deviceId)
  if (card === undefined)
    return { missing: `no NVIDIA card ${deviceId} (nvidia-smi); --cpu shows that the parts run` }
  const missing = missingProviderReason(provider)
  return missing === undefined ? { card: provider === 'cuda' ? card : `${card}, ${provider}` } : { missing }
}

const unknown = positionals.filter((text) => !isPart(text))
if (unknown.length > 0) usage(`there is no part ${unknown.join(', ')}`)
const { provider: named } = values
if (!isGpuProvider(named)) usage(`${named} is no provider of a GPU that is measured`)
if (!/^\d+$/.test(values.device)) usage(`--device is a number, not ${values.device}`)
const wanted = parts.filter((part) => positionals.length === 0 || positionals.includes(part))
const out = resolve(values.out ?? join(tmpdir(), 'gantry-bench-gpu.jsonl'))

function table(lines: readonly Line[]): void {
  process.stdout.write(`\n${tableOf(lines.filter(({ part }) => wanted.includes(part)))}`)
}

if (values.table) {
  for (const card of cardsIn(out)) table(new Results(out, card).lines)
  process.exit(0)
}
const provider = values.cpu ? 'cpu' : named
const deviceId = Number(values.device)
const on = await whatOn(provider, deviceId)
if ('missing' in on) {
  note(`skipped: ${on.missing}`)
  process.exit(0)
}
const results = new Results(out, on.card)
const scratch = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
const measurer = new Measurer(scratch)
const watch = provider === 'cpu' ? undefined : await CardWatch.start(deviceId)

/** By what nothing more is begun. */
const cutOff: { signal?: 'SIGINT' | 'SIGTERM' | 'SIGHUP' } = {}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    cutOff.signal = signal
    void measurer.stop()
  })

const context: Context = {
  provider,
  deviceId,
  repository: join(scratch, 'models'),
  python: values.python,
  clip1080: resolve(values.clip ?? join(dirname(out), 'gantry-bench-1080p.mp4')),
  settleMs: provider === 'cpu' ? 1_000 : 4_000,
}

/** Where nothing was counted a mean is no number, and came as null. */
function known(figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => (value as unknown) !== null))
}

/** @returns how many measurements failed, and how many there was no time for. */
async function runPart(part: Part): Promise<Readonly<{ failed: number; left: number }>> {
  const counts = { failed: 0, left: 0 }
  const overMs = performance.now() + partSeconds[part] * 1_000
  const taken = new Set<string>()
  const stands = (name: string) => (values.again ? taken.has(name) : results.has(name))
  for (const job of jobsOf(part, provider === 'cpu' ? 'short' : 'full')) {
    if (cutOff.signal) break
    const open = placesOf(job).filter((place) => !stands(nameOf(place)))
    if (open.length === 0) continue
    const leftMs = overMs - performance.now()
    if (leftMs < job.usualSeconds * 1_000) {
      counts.left += open.length
      continue
    }
    note(`${part}: ${open.map(nameOf).join('; ')} (${Math.round(leftMs / 1e3)} s left)`)
    const mibBefore = watch?.mib
    const withinMs = Math.min(leftMs, Math.max(30, 3 * job.usualSeconds) * 1_000)
    const standing = placesOf(job).map(nameOf).filter(stands)
    const outcome = await measurer.measure({ job, context, standing }, withinMs, (told) => {
      taken.add(nameOf(told.place))
      const figures = known(told.figures)
      const beside = watch?.beside(figures, told.windows, mibBefore)
      process.stdout.write(`${results.add(part, told.place, told.unit, { ...figures, ...beside })}\n`)
    })
    if (cutOff.signal) break
    if (outcome.type === 'not here') note(`skipped: ${outcome.reason}`)
    if (outcome.type !== 'failed') continue
    note(`failed: ${outcome.reason}`)
    for (const place of open.filter((each) => !taken.has(nameOf(each)))) {
      counts.failed += 1
      process.stdout.write(`${results.add(part, place, '-', { error: outcome.reason })}\n`)
    }
  }
  // What the next part finds on the card is its own.
  await measurer.stop()
  return counts
}

try {
  mkdirSync(context.repository)
  makeGpuRepository(context.repository)
  const all: Awaited<ReturnType<typeof runPart>>[] = []
  for (const part of wanted) all.push(await runPart(part))
  const sum = (key: 'failed' | 'left') => all.reduce((total, each) => total + each[key], 0)
  table(results.lines)
  note(`${cutOff.signal ? 'cut off; what was measured stands in' : 'results:'} ${out}`)
  if (sum('left') > 0) note(`${sum('left')} had no time: the same command goes on with them`)
  if (cutOff.signal) process.exitCode = 128 + constants.signals[cutOff.signal]
  else if (sum('failed') > 0) process.exitCode = 1
} finally {
  watch?.stop()
  await measurer.stop()
  rmSync(scratch, { recursive: true, force: true })
}
