import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { compareReports } from '../../../src/tools/perf/compare-reports.js'
import { comparisonPage } from '../../../src/tools/perf/perf-page.js'
import { readReport, type SavedReport } from '../../../src/tools/perf/perf-report.js'
import { tempDir } from '../../support/temp-dir.js'

const names = ['a.json', 'b.json'] as const

function report(
  speed: number,
  levels: readonly number[],
  kind: SavedReport['load']['kind'] = 'concurrency',
): SavedReport {
  return {
    gantryPerf: 1,
    url: 'http://h:1',
    model: '<m>',
    load: { kind },
    levels: levels.map((level) => ({
      level,
      steady: level < 3,
      inferencesPerSecond: 100 * speed,
      latencyUs: { p50: 1_000 / speed, p90: 1, p95: 1, p99: 8_000 / speed },
    })),
  }
}

it('compares levels that both have', () => {
  const [first, second] = [report(1, [1, 2, 3]), report(2, [2, 3, 4])]
  const comparison = compareReports(first, second, names)
  expect(comparison.levels).toEqual([
    expect.objectContaining({ level: 2, throughputRatio: 2, p50Ratio: 0.5, p99Ratio: 0.5, steady: true }),
    expect.objectContaining({ level: 3, inferencesPerSecond: [100, 200], steady: false }),
  ])
  const page = comparisonPage(comparison, [first, second])
  expect(page).toContain('<span class="better">2.00</span>')
  expect(page).toContain('&#60;m&#62; at http://h:1')
})

it.each([
  ['other kinds of load', report(1, [1], 'rate'), 'a.json is by concurrency and b.json by rate'],
  ['no level in common', report(1, [9]), 'no concurrency in common'],
])('refuses %s', (_, second, problem) => {
  expect(() => compareReports(report(1, [1]), second, names)).toThrow(problem)
})

describe('a file that is no report', () => {
  it.each([
    ['is no JSON', '{'],
    ['is of something else', '{"levels": []}'],
    ['has a level without figures', JSON.stringify({ ...report(1, []), levels: [{ level: 1 }] })],
  ])('%s', (_, text) => {
    const path = join(tempDir(), 'a.json')
    writeFileSync(path, text)
    expect(() => readReport(path)).toThrow(
      expect.objectContaining({
        code: 'GANTRY_USAGE',
        hint: expect.stringContaining('--save') as string,
      }) as Error,
    )
  })

  it('is not there', () => {
    expect(() => readReport('/nowhere.json')).toThrow('ENOENT')
  })
})
