import { cpus } from 'node:os'
import { nowMs } from '../../src/lifecycle/clock.js'
import { stolenSeconds } from '../support/cpu.js'

/** Share of all cores that the host may take during a round, and how often a round is taken at most. */
const calm = { stolen: 0.02, tries: 4 }

export type Figures = Readonly<Record<string, number | string>>

/** Numbers to four places. */
export function rounded(figures: Figures): Figures {
  return Object.fromEntries(
    Object.entries(figures).map(([key, value]) => [
      key,
      typeof value === 'number' ? Math.round(value * 1e4) / 1e4 : value,
    ]),
  )
}

/** The processor of this machine. */
export function machine(): string {
  return `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`
}

/** One line of JSON per figure, so that runs can be compared by a program. */
export function report(name: string, unit: string, figures: Figures): void {
  process.stdout.write(`${JSON.stringify({ name, unit, ...rounded(figures), machine: machine() })}\n`)
}

/** Quantile of values, which are sorted in place. @param q - 0..1 */
export function quantile(values: number[], q: number): number {
  values.sort((a, b) => a - b)
  return values[Math.min(values.length - 1, Math.floor(q * values.length))] ?? Number.NaN
}

/** Median and the interval that holds the true one with 95 %, by order statistics. */
export function medianOf(values: readonly number[]): Readonly<{ median: number; interval: string }> {
  const sorted = [...values].sort((a, b) => a - b)
  const away = Math.floor((sorted.length - 1.96 * Math.sqrt(sorted.length)) / 2)
  const [low, high] = [sorted[Math.max(0, away)], sorted[sorted.length - 1 - Math.max(0, away)]]
  return { median: quantile(sorted, 0.5), interval: `${low?.toFixed(3)}..${high?.toFixed(3)}` }
}

/** Takes a round again in which the host of a virtual machine gave its cores to others, and says so; the last try counts as it is. */
export async function undisturbed<T>(round: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const before = { stolen: stolenSeconds(), atMs: nowMs() }
    const taken = await round()
    const stolen = (stolenSeconds() - before.stolen) / ((nowMs() - before.atMs) / 1_000) / cpus().length
    if (stolen <= calm.stolen) return taken
    const again = tries < calm.tries
    const share = `${(stolen * 100).toFixed(1)} % of the cores`
    process.stderr.write(
      `the host took ${share} during a round, which is ${again ? 'taken again' : 'kept'}\n`,
    )
    if (!again) return taken
  }
}

/** Where the messages of a stream lost their time, in ms. */
export type Stages = Readonly<{
  queue: number
  infer: number
  postprocess: number
  out: number
  total: number
}>

/** `out` is from the end of postprocessing to publishing, the way from ffmpeg into the engine included. */
export function stagesOf(
  timingsMs: Readonly<{ queue: number; infer: number; postprocess: number; captureToPublish: number }>,
): Stages {
  const { queue, infer, postprocess, captureToPublish: total } = timingsMs
  return { queue, infer, postprocess, out: total - queue - infer - postprocess, total }
}

/** One line: the mean of each stage over the slowest hundredth. */
export function reportSlowest(name: string, all: readonly Stages[]): void {
  const worst = [...all].sort((a, b) => b.total - a.total).slice(0, Math.ceil(all.length / 100))
  const mean = (stage: keyof Stages) => worst.reduce((sum, each) => sum + each[stage], 0) / worst.length
  report(`${name}, slowest hundredth`, 'ms', {
    queue: mean('queue'),
    infer: mean('infer'),
    postprocess: mean('postprocess'),
    out: mean('out'),
    total: mean('total'),
  })
}
