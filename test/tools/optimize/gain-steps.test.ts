import { expect, it } from 'vitest'
import { curvesTo, stepsTo } from '../../../src/tools/optimize/gain-steps.js'
import { plainBaseline } from '../../../src/tools/optimize/run-optimize.js'
import type { Configuration } from '../../../src/tools/optimize/search-space.js'

const baseline = plainBaseline(2)
const best: Configuration = {
  ...baseline,
  form: 'int8',
  intraOpThreads: 1,
  spinning: false,
  instances: 2,
  maxBatch: 4,
  queueDelayUs: 1_000,
}

it('goes from the baseline to the best, one kind of setting after another', () => {
  const steps = stepsTo(baseline, best)
  expect(steps.map(({ name }) => name)).toEqual([
    'baseline',
    'form of the model',
    'runtime options',
    'instances',
    'batches',
  ])
  expect(steps[0]?.configuration).toEqual(baseline)
  expect(steps.at(-1)?.configuration).toEqual(best)
  expect(steps[2]?.configuration).toMatchObject({
    form: 'int8',
    intraOpThreads: 1,
    instances: 1,
    maxBatch: 1,
  })
})

it('leaves out steps that change nothing', () => {
  expect(stepsTo(baseline, { ...baseline, instances: 2 }).map(({ name }) => name)).toEqual([
    'baseline',
    'instances',
  ])
  expect(stepsTo(baseline, baseline)).toHaveLength(1)
})

it('draws three curves, fewer where they are the same', () => {
  expect(curvesTo(baseline, best)).toHaveLength(3)
  expect(curvesTo(baseline, { ...best, instances: 1, maxBatch: 1, queueDelayUs: 0 })).toHaveLength(2)
  expect(curvesTo(baseline, baseline)).toHaveLength(1)
})
