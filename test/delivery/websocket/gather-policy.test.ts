import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { followed, LoopLoad, mostWaitMs } from '../../../src/delivery/websocket/gather-policy.js'
import { defaultStreamLimits } from '../../../src/delivery/websocket/stream-limits.js'
import { nowMs } from '../../../src/lifecycle/clock.js'

const limits = { idleLoad: 0.1, busyLoad: 0.5, gatherMs: 50 }

it.each([
  [0, 0],
  [0.1, 0],
  [0.2, 3.125],
  [0.3, 12.5],
  [0.4, 28.125],
  [0.5, 50],
  [1, 50],
])('a loop that is busy for %d of its time gathers for %d ms', (load, ms) => {
  expect(mostWaitMs(load, limits)).toBeCloseTo(ms, 6)
})

it('never gathers for longer when it is less busy', () => {
  const waits = Array.from({ length: 101 }, (_, percent) => mostWaitMs(percent / 100, defaultStreamLimits))
  expect(waits).toEqual([...waits].sort((a, b) => a - b))
  expect([waits[0], waits[100]]).toEqual([0, defaultStreamLimits.gatherMs])
})

it('follows a change within seconds, whatever the steps', () => {
  let inSteps = 0
  for (let step = 0; step < 20; step += 1) inSteps = followed(inSteps, 0.8, 100)
  expect(inSteps).toBeCloseTo(followed(0, 0.8, 2_000), 9)
  expect(inSteps).toBeGreaterThan(0.8 * 0.85)
  expect(followed(0.8, 0, 60_000)).toBeCloseTo(0, 9)
})

/**
 * A loop that takes `costMs` for each time it sends, and messages that come at random: how long it gathers in the end, and how much that
 * still varies.
 */
function settled(
  costMs: number,
  perSecond: number,
): Readonly<{ waitMs: number; spreadMs: number; load: number }> {
  let load = 0
  const waits: number[] = []
  for (let step = 0; step < 600; step += 1) {
    const waitMs = mostWaitMs(load, defaultStreamLimits)
    waits.push(waitMs)
    // One after which nobody else comes is sent alone.
    const sendsPerSecond = perSecond / (1 + (perSecond * waitMs) / 1_000)
    load = followed(load, Math.min(1, (sendsPerSecond * costMs) / 1_000), 100)
  }
  const last = waits.slice(-100)
  return { waitMs: waits.at(-1)!, spreadMs: Math.max(...last) - Math.min(...last), load }
}

it.each([
  ['300 clients, 50 messages/s', 2.7, 50, 1, 0.14],
  ['1,000 clients, 20 messages/s', 9, 20, 4, 0.18],
  ['1,000 clients, 50 messages/s', 9, 50, 13, 0.31],
  ['5,000 clients, 50 messages/s', 45, 50, 50, 0.7],
])('settles with %s', (_, costMs, perSecond, mostMs, mostLoad) => {
  const { waitMs, spreadMs, load } = settled(costMs, perSecond)
  expect(waitMs).toBeLessThanOrEqual(mostMs)
  expect(load).toBeLessThanOrEqual(mostLoad)
  expect(spreadMs).toBeLessThan(0.1)
})

it('tells how busy the loop is', async () => {
  const load = new LoopLoad()
  await pause(300)
  const idle = load.now()
  const untilMs = nowMs() + 500
  while (nowMs() < untilMs);
  await pause(0)
  expect(load.now()).toBeGreaterThan(idle + 0.2)
})
