import { expect, it } from 'vitest'
import {
  configurationsOf,
  configurationText,
  keyOf,
  placeOf,
  type SearchSpace,
  usualOnes,
} from '../../../src/tools/optimize/search-space.js'

const space: SearchSpace = {
  form: ['original', 'int8'],
  provider: ['cpu'],
  intraOpThreads: [1, 2],
  spinning: [false, true],
  graph: ['all'],
  arena: [true],
  parallel: [false],
  instances: [1, 2, 4],
  maxBatch: [1, 4],
  queueDelayUs: [0, 2_000],
}

it('has every configuration once, and none that is another under another name', () => {
  const all = configurationsOf(space, 8)
  expect(new Set(all.map(keyOf)).size).toBe(all.length)
  // Forms x (one thread, or two that spin or do not) x instances x (no batch, or one with two delays).
  expect(all).toHaveLength(2 * 3 * 3 * 3)
  expect(all.filter(({ intraOpThreads, spinning }) => intraOpThreads === 1 && spinning)).toEqual([])
  expect(all.filter(({ maxBatch, queueDelayUs }) => maxBatch === 1 && queueDelayUs > 0)).toEqual([])
})

it('leaves out more threads than twice the cores', () => {
  const all = configurationsOf(space, 1)
  expect(Math.max(...all.map((each) => each.instances * each.intraOpThreads))).toBe(2)
  expect(all.some(({ instances }) => instances === 2)).toBe(true)
})

it('does not multiply what is of the CPU alone on a GPU', () => {
  const all = configurationsOf({ ...space, provider: ['cuda'] }, 1)
  expect(all).toHaveLength(2 * 3 * 3)
})

it('begins with what is usual, of each form', () => {
  const all = configurationsOf(space, 2)
  const first = usualOnes(all, 2).map((index) => all[index]!)
  const told = first.map((each) => [each.form, each.intraOpThreads, each.instances, each.maxBatch])
  expect(told).toEqual([
    ['original', 1, 2, 1],
    ['original', 2, 1, 1],
    ['int8', 1, 2, 1],
    ['int8', 2, 1, 1],
  ])
  // The nearest where that is not in the space.
  const few = configurationsOf({ ...space, form: ['int8'], instances: [4], maxBatch: [4] }, 2)
  expect(usualOnes(few, 2).length).toBeGreaterThan(0)
})

it('is empty where nothing is allowed', () => {
  expect(configurationsOf({ ...space, instances: [] }, 2)).toEqual([])
})

it('places numbers on their scale and kinds apart, and leaves out what is not decided', () => {
  const [first] = configurationsOf(space, 8)
  const last = { ...first!, form: 'int8', instances: 4, maxBatch: 4 }
  expect(placeOf(first!, space).map(({ at }) => at)).toEqual([0, 0, 0, 0, 0, 0])
  expect(placeOf(last, space)).toEqual([
    { at: 1, isOnScale: false },
    { at: 0, isOnScale: true },
    { at: 0, isOnScale: false },
    { at: 1, isOnScale: true },
    { at: 1, isOnScale: true },
    { at: 0, isOnScale: true },
  ])
})

it('is told by what is decided in its space, or whole', () => {
  const [first] = configurationsOf(space, 8)
  expect(configurationText(first!, space)).toBe(
    'original, 1 thread, not spinning, 1 instance, batch 1, delay 0 ms',
  )
  expect(configurationText(first!)).toBe(
    'original, cpu, 1 thread, not spinning, graph all, arena, sequential, 1 instance, batch 1, delay 0 ms',
  )
})
