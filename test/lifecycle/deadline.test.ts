import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Deadline } from '../../src/lifecycle/deadline.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('tells what is left of it, and nothing once it has passed', async () => {
  const deadline = new Deadline(1_000)
  expect(deadline.leftMs).toBe(1_000)
  await vi.advanceTimersByTimeAsync(400)
  expect(deadline.leftMs).toBe(600)
  await vi.advanceTimersByTimeAsync(900)
  expect(deadline.leftMs).toBe(0)
})
