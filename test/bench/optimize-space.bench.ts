import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { seededRandom } from '../../src/tools/perf/arrivals.js'
import { Journal } from '../../src/tools/optimize/journal.js'
import { makeForms } from '../../src/tools/optimize/model-forms.js'
import { onnxModelNamed } from '../../src/tools/model-file.js'
import { plainBaseline } from '../../src/tools/optimize/run-optimize.js'
import { medianOf } from '../../src/tools/optimize/repeated.js'
import {
  type Configuration,
  configurationsOf,
  configurationText,
  type SearchSpace,
} from '../../src/tools/optimize/search-space.js'
import { runTrial } from '../../src/tools/optimize/trial.js'
import { Trials } from '../../src/tools/optimize/trials.js'

/**
 * Measures every configuration of a space, for the search to be held against all that there is:
 * `npx tsx test/bench/optimize-space.bench.ts PICTURES WORK`, which takes some twenty minutes on two cores and goes on where it was cut.
 * It writes test/tools/optimize/recorded-space.json. Each figure is a ratio to the baseline, measured again every eight
 * trials; of those that may be among the best it is the median of five.
 *
 * @param PICTURES - that int8 calibrates on.
 * @param WORK - folder for what is kept between two parts.
 */
const [pictures = '', work = ''] = process.argv.slice(2)
const cores = 2
const rounds = 5
const space: Omit<SearchSpace, 'form'> = {
  provider: ['cpu'],
  intraOpThreads: [1, 2],
  spinning: [false, true],
  graph: ['all', 'basic'],
  arena: [true, false],
  parallel: [false],
  instances: [1, 2, 4],
  maxBatch: [1, 2, 4, 8],
  queueDelayUs: [0],
}
const signal = new AbortController().signal
mkdirSync(work, { recursive: true })
const model = onnxModelNamed('models', 'ppe_detect', 'measured')
const { forms } = await makeForms(model, {
  precisions: ['float32', 'int8'],
  sizes: [],
  batches: true,
  maxBatchSize: 8,
  frames: [pictures],
  folder: join(work, 'forms'),
  python: undefined,
  env: process.env,
  quiet: true,
  say: tell,
  signal,
})
const journal = await Journal.open(join(work, 'journal.jsonl'), 'recorded space')
const trials = new Trials({
  forms: new Map(forms.map((form) => [form.name, form])),
  objective: { kind: 'throughput' },
  limits: {},
  inputData: 'random',
  shapes: {},
  seed: 1,
  windowMs: 250,
  mostWindows: 4,
  cores,
  journal,
  run: (task) => runTrial({ ...task, windowMs: Math.min(task.windowMs, 400) }, signal),
})
const whole: SearchSpace = { form: forms.map(({ name }) => name), ...space }
const random = seededRandom(7)
const configurations = configurationsOf(whole, cores)
  .map((each) => ({ each, at: random() }))
  .sort((a, b) => a.at - b.at)
  .map(({ each }) => each)
const baseline = plainBaseline(cores)
const measured = new Map<Configuration, { gain: number; p99Ms: number }[]>()

/** Measures each once, beside the baseline. */
async function pass(name: string, some: readonly Configuration[]): Promise<void> {
  let reference = 1
  for (const [index, configuration] of some.entries()) {
    if (index % 8 === 0)
      reference = (await trials.measure(`reference ${name} ${index}`, baseline)).worth?.perSecond ?? reference
    const { worth } = await trials.measure(name, configuration)
    if (worth === undefined) continue
    const figures = { gain: worth.perSecond / reference, p99Ms: worth.p99Ms }
    measured.set(configuration, [...(measured.get(configuration) ?? []), figures])
    tell(
      `${name} ${index + 1} of ${some.length}: ${configurationText(configuration)}, ${round(figures.gain)} x, p99 ${round(figures.p99Ms)} ms`,
    )
  }
}

await pass('trial', configurations)
// What decides is told apart by more than one measurement: those that may be among the best again, in turn.
const best = Math.max(...[...measured.values()].map(([first]) => first?.gain ?? 0))
const close = configurations.filter((each) => (measured.get(each)?.[0]?.gain ?? 0) >= best / 2)
for (let turn = 2; turn <= rounds; turn++) await pass(`turn ${turn}`, close)
const rows = [...measured].map(([configuration, figures]) => ({
  ...configuration,
  gain: round(medianOf(figures.map(({ gain }) => gain))),
  p99Ms: round(medianOf(figures.map(({ p99Ms }) => p99Ms))),
}))
const machine = { processor: cpus()[0]?.model, cores, model: model.name }
const text = rows.map((row) => `    ${JSON.stringify(row)}`).join(',\n')
writeFileSync(
  'test/tools/optimize/recorded-space.json',
  `{\n  "machine": ${JSON.stringify(machine)},\n  "space": ${JSON.stringify(whole)},\n  "rows": [\n${text}\n  ]\n}\n`,
)

function round(value: number): number {
  return Number(value.toPrecision(4))
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
