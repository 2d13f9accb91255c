import { expect, it } from 'vitest'
import { levelRange, levelsOf } from '../../../src/tools/perf/level-range.js'

const rules = { flag: '--concurrency', whole: true, most: 100, step: () => 1 }
const rates = {
  flag: '--request-rate',
  whole: false,
  most: 1e6,
  step: (a: number, b: number) => (b - a) / 10 || 1,
}

it.each([
  ['4', rules, [4]],
  ['1:3', rules, [1, 2, 3]],
  ['1:16:5', rules, [1, 6, 11, 16]],
  ['1:10:4', rules, [1, 5, 9]],
  ['7:7', rules, [7]],
  ['0.5:1.5:0.5', rates, [0.5, 1, 1.5]],
  ['0.1:0.3:0.1', rates, [0.1, 0.2, 0.3]],
  ['100:200', rates, [100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200]],
])('%s is %j', (text, given, levels) => {
  expect(levelsOf(levelRange(text, given))).toEqual(levels)
})

it.each([
  '',
  'x',
  '1:',
  ':3',
  '1:2:3:4',
  '0',
  '-1',
  '3:1',
  '1:101',
  '1.5',
  '1:3:0',
  '1:3:-1',
  'NaN',
  '1e999',
])('refuses "%s" and names what to write', (text) => {
  expect(() => levelRange(text, rules)).toThrow(
    expect.objectContaining({
      code: 'GANTRY_USAGE',
      message: expect.stringContaining(`--concurrency ${text}`) as string,
      hint: expect.stringContaining('whole numbers from 1 to 100') as string,
    }) as Error,
  )
})
