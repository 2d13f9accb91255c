import { expect, it } from 'vitest'
import { readinessOf, type ServiceParts } from '../../../src/processes/control/readiness.js'

function parts(detector: unknown): ServiceParts {
  const health = { index: 0, state: 'ready', reason: '', detector }
  return {
    engines: [{ health, providers: [] }],
    directory: Object.assign([], { size: 0 }),
    sinks: [],
    cache: { health: {} },
    store: { health: { state: 'up', reason: 'records are stored', bytes: 0 } },
    stream: { health: {} },
    repositories: { reasons: [] },
    modelServer: undefined,
  } as unknown as ServiceParts
}

it('R67: says of a model that gives no scores how many boxes were left out, and why; the others are delivered', () => {
  const scoreFault = { boxes: 3, reason: 'model "m" gives scores from -3 to 4.5' }
  const found = readinessOf(parts({ providerFailures: [], scoreFault }), false)
  expect(found.ready).toBe(true)
  expect(found.reasons).toEqual([`engine 0 left out 3 boxes: ${scoreFault.reason}`])
  expect(readinessOf(parts({ providerFailures: [] }), false).reasons).toEqual([])
})
