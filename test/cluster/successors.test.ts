import { describe, expect, it } from 'vitest'
import type { SlotClaim } from '../../src/cluster/slot-claim.js'
import { succeeded, type SuccessorsDeps } from '../../src/cluster/successors.js'
import { atMost } from '../../src/lifecycle/delay.js'
import { until } from '../support/until.js'

/** What the other nodes have claimed and show, as the test goes on. */
function world() {
  const claims = new Map<number, SlotClaim>()
  const live = new Map<string, Set<string>>()
  const here = new Map<number, string[]>()
  const taken: number[] = []
  let isAway = false
  const deps: SuccessorsDeps = {
    claims: () => (isAway ? Promise.reject(new Error('away')) : Promise.resolve(claims)),
    liveHere: () => here,
    liveOn: (node) => Promise.resolve(live.get(node)),
  }
  const ended = new AbortController()
  const begin = (held: ReadonlyMap<number, number>, wasOut = false) =>
    succeeded(held, deps, (slots) => taken.push(...slots), ended.signal, wasOut)
  return { claims, live, here, taken, ended, begin, away: (is: boolean) => (isAway = is) }
}

const asLong = 700

describe('cameras that go to other nodes', () => {
  it('run on until the other has claimed them and shows those that are live here', async () => {
    const { claims, live, here, taken, begin } = world()
    for (const slot of [1, 2, 3]) claims.set(slot, { node: 'a', generation: 5 })
    here.set(1, ['dock', 'gate']).set(2, ['yard'])
    live.set('b', new Set())
    const done = begin(new Map([[1, 5], [2, 5], [3, 5]])) // prettier-ignore
    expect(await atMost(asLong, done)).toBeUndefined()
    expect(taken).toEqual([])
    for (const slot of [1, 2, 3]) claims.set(slot, { node: 'b', generation: 6 })
    // One without live cameras need not be waited for.
    await until('the empty one', () => taken.length === 1)
    expect(taken).toEqual([3])
    live.set('b', new Set(['dock', 'yard']))
    await until('the one that is shown', () => taken.length === 2)
    expect(taken).toEqual([3, 2])
    live.set('b', new Set(['dock', 'gate', 'yard']))
    await done
    expect(taken).toEqual([3, 2, 1])
  })

  it('are not waited for without end: one may not come to life there', async () => {
    const { claims, live, here, taken, begin } = world()
    claims.set(1, { node: 'b', generation: 6 }).set(2, { node: 'c', generation: 6 })
    here.set(1, ['dock']).set(2, ['yard'])
    live.set('b', new Set())
    const beganMs = performance.now()
    const done = begin(new Map([[1, 5], [2, 5]])) // prettier-ignore
    // That node says nothing of its cameras.
    await until('the silent one', () => taken.includes(2))
    expect(performance.now() - beganMs).toBeLessThan(4_500)
    await done
    expect(taken).toEqual([2, 1])
    expect(performance.now() - beganMs).toBeGreaterThan(4_900)
  })

  it('are given up at once after a while of silence, where others have them, and else run on', async () => {
    const { claims, live, here, taken, begin } = world()
    claims.set(1, { node: 'b', generation: 6 }).set(2, { node: 'a', generation: 5 })
    here.set(1, ['dock']).set(2, ['yard'])
    live.set('b', new Set())
    const done = begin(new Map([[1, 5], [2, 5]]), true) // prettier-ignore
    await until('the one that was claimed', () => taken.length === 1)
    expect(taken).toEqual([1])
    claims.set(2, { node: 'b', generation: 6 })
    expect(await atMost(asLong, done)).toBeUndefined()
    live.set('b', new Set(['yard']))
    await done
    expect(taken).toEqual([1, 2])
  })

  it('stay while the brokers do not say who has claimed them, and when it is given up', async () => {
    const { claims, taken, ended, begin, away } = world()
    claims.set(1, { node: 'b', generation: 6 })
    away(true)
    const done = begin(new Map([[1, 5]]))
    expect(await atMost(asLong, done)).toBeUndefined()
    ended.abort()
    await done
    away(false)
    expect(taken).toEqual([])
  })
})
