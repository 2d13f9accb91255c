import { expect, it } from 'vitest'
import { ProbeTurns } from '../../../../src/serving/repository/probe/probe-turns.js'

const settled = () => new Promise((resolve) => setImmediate(resolve))

it.each([
  [10, 3],
  [2.5, 2],
  [0.5, 1],
])('S9: with memory for %s models, %s are tried side by side', async (available, expected) => {
  const turns = new ProbeTurns(1_000, () => available * 1_000)
  let underWay = 0
  let most = 0
  let failures = 0
  const probes = [1, 2, 3].map((each) =>
    turns
      .take(async () => {
        most = Math.max(most, ++underWay)
        await settled()
        underWay -= 1
        if (each === 1) throw new Error('refused')
      })
      .catch(() => (failures += 1)),
  )
  await Promise.all(probes)
  expect({ most, underWay, failures }).toEqual({ most: expected, underWay: 0, failures: 1 })
})
