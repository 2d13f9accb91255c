import { expect, it } from 'vitest'
import type { Gap } from '../../src/store/record.js'
import { UntoldGaps } from '../../src/store/untold-gaps.js'

const gap = (dropped: number, sink = 'kafka'): Gap => {
  return { sink, cameraId: 'dock', reason: 'retention', dropped, fromMs: 1, toMs: 2 }
}
const told = (gaps: UntoldGaps, ...all: readonly ReturnType<typeof gap>[]) =>
  gaps.ofAll(all).map(({ sink, dropped }) => `${sink} ${dropped}`)

it('R109: each dropped record is told once, however often the file is asked before the word is committed', () => {
  const gaps = new UntoldGaps()
  expect(told(gaps, gap(5))).toEqual(['kafka 5'])
  expect(told(gaps, gap(5))).toEqual([])
  expect(told(gaps, gap(8), gap(2, 'mqtt'))).toEqual(['kafka 3', 'mqtt 2'])
  gaps.over(gap(5))
  // The file has what is not committed.
  expect(told(gaps, gap(3), gap(2, 'mqtt'))).toEqual([])
  gaps.over(gap(3))
  expect(told(gaps, gap(1))).toEqual(['kafka 1'])
})
