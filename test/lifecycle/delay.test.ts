import { describe, expect, it } from 'vitest'
import { unlessAborted } from '../../src/lifecycle/delay.js'

describe('unlessAborted', () => {
  const forEver = new Promise<never>(() => undefined)
  const reason = new Error('enough')

  it('settles like the work', async () => {
    const { signal } = new AbortController()
    expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1)
    await expect(unlessAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no')
  })

  it('lets go of work that does not end when the signal aborts, or has', async () => {
    const stop = new AbortController()
    const waiting = unlessAborted(forEver, stop.signal)
    stop.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    await expect(unlessAborted(forEver, stop.signal)).rejects.toBe(reason)
  })

  it('minds no failure of work that it let go', async () => {
    const stop = new AbortController()
    let fail: (error: Error) => void = () => undefined
    const waiting = unlessAborted(new Promise((_, reject) => (fail = reject)), stop.signal)
    stop.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    fail(new Error('late'))
    await new Promise(setImmediate)
  })
})
