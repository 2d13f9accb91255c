import { cpus } from 'node:os'

/** One line of JSON per figure, so that runs can be compared by a program. */
export function report(name: string, unit: string, figures: Readonly<Record<string, number | string>>): void {
  const rounded = Object.fromEntries(
    Object.entries(figures).map(([key, value]) => [
      key,
      typeof value === 'number' ? Math.round(value * 1e4) / 1e4 : value,
    ]),
  )
  const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`
  process.stdout.write(`${JSON.stringify({ name, unit, ...rounded, machine })}\n`)
}

/** Quantile of values, which are sorted in place. @param q - 0..1 */
export function quantile(values: number[], q: number): number {
  values.sort((a, b) => a - b)
  return values[Math.min(values.length - 1, Math.floor(q * values.length))] ?? Number.NaN
}
