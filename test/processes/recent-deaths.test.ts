import { expect, it } from 'vitest'
import { RecentDeaths } from '../../src/processes/recent-deaths.js'

it('a process that ends once is back at once, and one that keeps ending ever later', () => {
  let now = 0
  const deaths = new RecentDeaths(() => now)
  expect([deaths.add(), deaths.waitMs]).toEqual([1, 0])
  now = 59_000
  expect(deaths.add()).toBe(2)
  expect(deaths.waitMs).toBeGreaterThan(0)
  expect(deaths.text).toBe('2 deaths in 60 s')
  // The first is too long ago.
  now = 61_000
  expect(deaths.add()).toBe(2)
  const few = deaths.waitMs
  for (let more = 0; more < 4; more += 1) deaths.add()
  expect(deaths.waitMs).toBeGreaterThan(few)
  deaths.forget()
  expect([deaths.count, deaths.waitMs]).toEqual([0, 0])
})
