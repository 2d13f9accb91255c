import { expect, it } from 'vitest'
import { startFew } from '../../../src/runtime/instances/start-few.js'

it('starts two at a time, in their order', async () => {
  let underWay = 0
  let most = 0
  const begun: number[] = []
  await startFew([1, 2, 3, 4, 5], async (each) => {
    begun.push(each)
    most = Math.max(most, ++underWay)
    await Promise.resolve()
    underWay -= 1
  })
  expect(begun).toEqual([1, 2, 3, 4, 5])
  expect(most).toBe(2)
})

it('begins none after one that failed, and waits for those that had begun', async () => {
  const begun: number[] = []
  let end = (): void => undefined
  const second = new Promise<void>((resolve) => (end = resolve))
  let isSettled = false
  const all = startFew([1, 2, 3, 4], (each) => {
    begun.push(each)
    return each === 1 ? Promise.reject(new Error('no memory')) : second
  }).finally(() => (isSettled = true))
  all.catch(() => undefined)
  await Promise.resolve()
  expect(isSettled).toBe(false)
  end()
  await expect(all).rejects.toThrow('no memory')
  expect(begun).toEqual([1, 2])
})

it('S11: starts two at a time of all models together', async () => {
  let underWay = 0
  let most = 0
  const start = async () => {
    most = Math.max(most, ++underWay)
    await new Promise((resolve) => setImmediate(resolve))
    underWay -= 1
  }
  await Promise.all([startFew([1, 2, 3], start), startFew([4, 5, 6], start), startFew([7], start)])
  expect(most).toBe(2)
})
