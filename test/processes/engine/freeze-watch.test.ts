import { expect, it } from 'vitest'
import { FreezeWatch } from '../../../src/processes/engine/freeze-watch.js'
import { grey } from './frames.js'

it('tells once that the same picture has come for the set time, and again after it moved', () => {
  const watch = new FreezeWatch(1_000)
  const told = (times: readonly number[], brightness: number) =>
    times.map((atMs) => watch.frame(grey(1, atMs, brightness)))
  expect(told([0, 500, 999], 50)).toEqual([false, false, false])
  expect(told([1_000, 1_500, 9_000], 50)).toEqual([true, false, false])
  expect(watch.frozen).toBe(true)
  expect(told([9_100], 51)).toEqual([false])
  expect(watch.frozen).toBe(false)
  expect(told([9_200, 10_100], 51)).toEqual([false, true])
})

it('never tells when it is switched off', () => {
  const watch = new FreezeWatch(0)
  expect([0, 1e9].map((atMs) => watch.frame(grey(1, atMs)))).toEqual([false, false])
})

it('does not take another size of pictures for another picture', () => {
  const watch = new FreezeWatch(1_000)
  const told = (times: readonly number[], brightness: number) =>
    times.map((atMs) => watch.frame(grey(1, atMs, brightness)))
  expect(told([0, 1_000], 50)).toEqual([false, true])
  watch.sizeChanges()
  expect(told([2_000, 3_000], 70)).toEqual([false, false])
  expect(watch.frozen).toBe(true)
  expect(told([3_100], 71)).toEqual([false])
  expect(watch.frozen).toBe(false)
})
