import { describe, expect, it } from 'vitest'
import { maxRetryAfterMs, meaningOf, retryAfterOf } from '../../../src/delivery/webhook/webhook-answer.js'

const atMs = Date.parse('2026-11-20T08:15:30Z')

describe('retryAfterOf', () => {
  it.each([
    ['120', 120_000],
    [' 0 ', 0],
    ['Fri, 20 Nov 2026 08:16:00 GMT', 30_000],
    ['Friday, 20-Nov-26 08:16:00 GMT', 30_000],
    ['Fri Nov 20 08:16:00 2026 GMT', 30_000],
    ['Fri, 20 Nov 2026 08:00:00 GMT', 0],
    ['86400', maxRetryAfterMs],
    ['9999999999', maxRetryAfterMs],
    ['Fri, 20 Nov 2036 08:16:00 GMT', maxRetryAfterMs],
    ['-5', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['', undefined],
    ['99999999999999999999', undefined],
    [undefined, undefined],
  ])('reads %j as %j ms', (header, ms) => {
    expect(retryAfterOf(header, atMs)).toBe(ms)
  })
})

describe('meaningOf', () => {
  it.each([
    [200, 'taken'],
    [204, 'taken'],
    [299, 'taken'],
    [301, 'later'],
    [400, 'refused'],
    [401, 'later'],
    [403, 'later'],
    [404, 'later'],
    [407, 'later'],
    [408, 'later'],
    [409, 'refused'],
    [410, 'later'],
    [413, 'refused'],
    [415, 'refused'],
    [422, 'refused'],
    [425, 'later'],
    [429, 'later'],
    [451, 'later'],
    [500, 'later'],
    [503, 'later'],
    [599, 'later'],
  ])('takes %i for %s', (status, kind) => {
    expect(meaningOf(status, undefined, '', atMs).kind).toBe(kind)
  })

  it('names the setting that a login or a path is refused for', () => {
    expect(meaningOf(401, undefined, 'expired', atMs)).toEqual({
      kind: 'later',
      reason: 'answers 401 (headers: a login is missing, or not taken any more): expired',
      retryAfterMs: undefined,
    })
  })
})
