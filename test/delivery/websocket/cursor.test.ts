import { describe, expect, it } from 'vitest'
import {
  cursorOfTime,
  formatCursor,
  parseCursor,
  timedPosition,
  timeOfPosition,
} from '../../../src/delivery/websocket/cursor.js'
import { cursorSchema } from '../../../src/messages/stream-protocol.js'

const nowMs = Date.UTC(2026, 10, 28, 12)

describe('a cursor', () => {
  it('is read as it was written, in the published form', () => {
    const place = { epoch: 'mb2k', position: timedPosition(nowMs, 0) }
    expect(cursorSchema.parse(formatCursor(place))).toBe(formatCursor(place))
    expect(parseCursor(formatCursor(place))).toEqual(place)
    expect(cursorSchema.safeParse(cursorOfTime(nowMs)).success).toBe(true)
  })

  it('says when, for thousands of messages of one moment, each behind the one before', () => {
    let position = 0
    const seen = new Set<number>()
    for (let index = 0; index < 5_000; index += 1) {
      const next = timedPosition(nowMs, position)
      expect(next).toBeGreaterThan(position)
      seen.add((position = next))
    }
    expect(seen.size).toBe(5_000)
    expect(timeOfPosition(position)).toBe(nowMs + 4)
  })

  it('is exact for as long as anybody will read it', () => {
    const last = timedPosition(Date.UTC(2200, 0), 0)
    expect(last).toBeLessThan(Number.MAX_SAFE_INTEGER)
    expect(timedPosition(Date.UTC(2200, 0), last)).toBe(last + 1)
  })

  it('of a service that counts one by one is no time', () => {
    expect(timeOfPosition(0)).toBeUndefined()
    expect(timeOfPosition(1e12)).toBeUndefined()
  })
})
