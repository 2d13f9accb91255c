import { describe, expect, it } from 'vitest'
import { claimsToGrant, type WaitingClaim } from '../../../src/runtime/rate-limit/turn-decision.js'

/** `2 a:1 b:2` is a claim whose start is 2 and that needs 1 of `a` and 2 of `b`. */
function claim(text: string): WaitingClaim & { text: string } {
  const [start, ...needs] = text.split(' ')
  return {
    text,
    start: Number(start),
    priority: 1,
    needs: needs.map((need) => {
      const [name = '', count] = need.split(':')
      return { name, device: undefined, count: Number(count) }
    }),
  }
}

describe('claimsToGrant', () => {
  it.each([
    ['grants what fits, in the order of arrival', { a: 2 }, ['0 a:1', '0 a:1', '0 a:1'], ['0 a:1', '0 a:1']],
    ['grants the lowest start first', { a: 1 }, ['3 a:1', '1 a:1', '2 a:1'], ['1 a:1']],
    ['grants nothing while nothing is free', { a: 0 }, ['0 a:1'], []],
    ['grants nothing of a resource that nobody has', {}, ['0 a:1'], []],
    ['needs all resources of a claim at once', { a: 1, b: 0 }, ['0 a:1 b:1'], []],
    ['lets others pass one that does not fit', { a: 1, b: 1 }, ['0 a:2', '1 b:1'], ['1 b:1']],
    ['keeps small ones behind a large one of the same resource', { a: 1 }, ['0 a:2', '1 a:1'], []],
    ['keeps what a claim that waits needs as well', { a: 1, b: 0 }, ['0 a:1 b:1', '1 a:1'], []],
    ['grants at once who needs nothing', { a: 0 }, ['0 a:1', '9'], ['9']],
  ] as const)('%s', (_, free, waiting, granted) => {
    const claims = waiting.map(claim)
    expect(claimsToGrant(claims, new Map(Object.entries(free))).map(({ text }) => text)).toEqual(granted)
  })
})
