import { expect, it } from 'vitest'
import { InFlight } from '../../../src/delivery/mqtt/in-flight.js'

it('never has more under way than it may, begins in order, and goes on after a failure', async () => {
  const flight = new InFlight(2)
  const begun: number[] = []
  const ends: (() => void)[] = []
  let most = 0
  let under = 0
  const work = Array.from({ length: 6 }, (_, index) =>
    flight.run(async () => {
      begun.push(index)
      most = Math.max(most, (under += 1))
      await new Promise<void>((resolve) => ends.push(resolve))
      under -= 1
      if (index === 1) throw new Error('one fails')
    }),
  )
  const settled = Promise.allSettled(work)
  for (let done = 0; done < 6; done += 1) {
    while (ends.length === 0) await Promise.resolve()
    ends.shift()?.()
  }
  expect((await settled).map(({ status }) => status === 'fulfilled')).toEqual([
    true,
    false,
    true,
    true,
    true,
    true,
  ])
  expect(begun).toEqual([0, 1, 2, 3, 4, 5])
  expect(most).toBe(2)
})
