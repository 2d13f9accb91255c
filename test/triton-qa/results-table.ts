import type { Outcome } from './outcome.js'

/** A suite that ran, and the fewest of its tests that are to pass. */
export type Row = Readonly<{ name: string; reach: number; outcomes: readonly Outcome[] }>

/** A table of suites, and below it each test that did not pass, with what it said or what it needs. */
export function tableOf(rows: readonly Row[]): { text: string; isReached: boolean } {
  const counted = rows.map(({ name, reach, outcomes }) => {
    const apart = outcomes.filter(({ needs, outcome }) => needs !== undefined && outcome !== 'passed')
    const passed = outcomes.filter(({ outcome }) => outcome === 'passed').length
    return { name, reach, passed, of: outcomes.length - apart.length, apart: apart.length }
  })
  const lines = [
    '| suite | pass | of | at least | not for Gantry |',
    '| --- | --- | --- | --- | --- |',
    ...counted.map(
      ({ name, reach, passed, of, apart }) => `| ${name} | ${passed} | ${of} | ${reach} | ${apart} |`,
    ),
    '',
    ...rows.flatMap(({ name, outcomes }) =>
      outcomes.filter(({ outcome }) => outcome !== 'passed').map((each) => `${name} ${lineOf(each)}`),
    ),
  ]
  return { text: `${lines.join('\n')}\n`, isReached: counted.every(({ passed, reach }) => passed >= reach) }
}

function lineOf({ test, variant, outcome, reason, needs }: Outcome): string {
  const name = variant === '' ? test : `${test} (${variant})`
  return needs === undefined ? `${name}: ${outcome}: ${reason.slice(0, 400)}` : `${name}: needs ${needs}`
}
