import { describe, expect, it } from 'vitest'
import { readTraceHeaders, traceparentLength, traceparentOf } from '../../src/messages/traceparent.js'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

describe('readTraceHeaders', () => {
  it.each([
    ['sampled', `00-${traceId}-${spanId}-01`, true],
    ['not sampled', `00-${traceId}-${spanId}-00`, false],
    ['with flags that are not known', `00-${traceId}-${spanId}-ff`, true],
    ['of a later version', `01-${traceId}-${spanId}-01`, true],
    ['of a later version that says more', `cc-${traceId}-${spanId}-01-what-the-future-will-be`, true],
  ])('takes one that is %s', (_, traceparent, isSampled) => {
    expect(readTraceHeaders({ traceparent })).toEqual({ traceId, spanId, isSampled })
  })

  it.each([
    ['is absent', undefined],
    ['is empty', ''],
    ['has version ff', `ff-${traceId}-${spanId}-01`],
    ['says more than its version may', `00-${traceId}-${spanId}-01-more`],
    ['has a dash at its end', `00-${traceId}-${spanId}-01-`],
    ['has more behind it without a dash', `01-${traceId}-${spanId}-01x`],
    ['has no trace', `00-${'0'.repeat(32)}-${spanId}-01`],
    ['has no span', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['is in capitals', `00-${traceId.toUpperCase()}-${spanId}-01`],
    ['is too short', `00-${traceId.slice(1)}-${spanId}-01`],
    ['is too long', `00-${traceId}0-${spanId}-01`],
    ['has other characters', `00-${traceId.replace('0', 'g')}-${spanId}-01`],
    ['has no flags', `00-${traceId}-${spanId}`],
    ['came twice', `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
    ['has white space around it', ` 00-${traceId}-${spanId}-01 `],
    ['is something else, and long', 'a-'.repeat(100_000)],
    ['is an object', '[object Object]'],
  ])('passes over one that %s, and its state with it', (_, traceparent) => {
    expect(readTraceHeaders({ traceparent, tracestate: 'vendor=1' })).toBeUndefined()
  })

  it('carries the state along, but for one that nobody has to carry', () => {
    const traceparent = `00-${traceId}-${spanId}-01`
    expect(readTraceHeaders({ traceparent, tracestate: 'a=1,b=2' })?.state).toBe('a=1,b=2')
    expect(readTraceHeaders({ traceparent, tracestate: '' })).not.toHaveProperty('state')
    expect(readTraceHeaders({ traceparent, tracestate: `a=${'x'.repeat(600)}` })).not.toHaveProperty('state')
  })
})

it('traceparentOf writes what readTraceHeaders reads', () => {
  for (const isSampled of [true, false]) {
    const traceparent = traceparentOf({ traceId, spanId, isSampled })
    expect(traceparent).toHaveLength(traceparentLength)
    expect(readTraceHeaders({ traceparent })).toEqual({ traceId, spanId, isSampled })
  }
})
