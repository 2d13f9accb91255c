import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { gapsOf, readTrace, traceOf, traceText } from '../../../src/tools/optimize/arrival-trace.js'
import { tempDir } from '../../support/temp-dir.js'

/** @param skip - numbers that were not analysed. */
const camera = (cameraId: string, count: number, fromMs: number, skip: readonly number[] = []) =>
  Array.from({ length: count }, (_, index) => ({
    cameraId,
    seq: index + 1,
    capturedAtMs: 1_000_000 + fromMs + index * 200,
  })).filter(({ seq }) => !skip.includes(seq))

it('has the times of all cameras, in order, from the first', () => {
  const trace = traceOf([...camera('b', 6, 50), ...camera('a', 6, 0)])
  expect(trace.cameras).toEqual(['a', 'b'])
  expect(trace.atMs.slice(0, 4)).toEqual([0, 50, 200, 250])
  expect(trace.atMs).toHaveLength(12)
  expect(trace.seconds).toBeCloseTo(1.05)
})

it('has pictures that were not analysed as well, by the numbers that are missing', () => {
  const whole = traceOf(camera('a', 12, 0))
  expect(traceOf(camera('a', 12, 0, [4, 5, 9])).atMs).toEqual(whole.atMs)
})

it('takes a camera that began anew for no gap', () => {
  const again = camera('a', 6, 1_200).map((each) => ({ ...each, seq: each.seq + 5_000 }))
  expect(traceOf([...camera('a', 6, 0), ...again]).atMs).toHaveLength(12)
})

it('is refused where too few came', () => {
  expect(() => traceOf(camera('a', 3, 0))).toThrow(/only 3 pictures/)
})

it('goes round in gaps that add up', () => {
  const gaps = gapsOf(traceOf(camera('a', 11, 0)))
  expect(gaps).toHaveLength(11)
  expect(gaps.every((gap) => Math.abs(gap - 200) < 1e-6)).toBe(true)
})

it('is read back from its file', () => {
  const path = join(tempDir(), 'trace.json')
  const trace = traceOf(camera('a', 12, 0))
  writeFileSync(path, traceText(trace))
  expect(readTrace(path)).toEqual(trace)
})

it.each([
  ['{', /no JSON/],
  ['{"gantryTrace": 1}', /no recorded trace/],
  ['{"gantryTrace":1,"cameras":["a"],"seconds":1,"atMs":[5,1]}', /not in order/],
])('names what is wrong with a file: %s', (text, message) => {
  const path = join(tempDir(), 'trace.json')
  writeFileSync(path, text)
  expect(() => readTrace(path)).toThrow(message)
})
