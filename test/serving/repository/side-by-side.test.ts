import { expect, it } from 'vitest'
import { type Job, sideBySide } from '../../../src/serving/repository/side-by-side.js'

const job = (name: string, size: number, ...needs: string[]): Job => ({ name, size, needs })

/** Work that ends when it is told to. */
function rig(jobs: readonly Job[], atATime: number) {
  const began: string[] = []
  const ends = new Map<string, (error?: Error) => void>()
  const closing = new AbortController()
  let isOver = false
  const over = sideBySide(
    jobs,
    atATime,
    ({ name }) =>
      new Promise((resolve, reject) => {
        began.push(name)
        ends.set(name, (error) => (error === undefined ? resolve() : reject(error)))
      }),
    closing.signal,
  ).then(() => (isOver = true))
  const end = async (name: string, error?: Error) => {
    ends.get(name)?.(error)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { began, end, over, closing, isOver: () => isOver }
}

it('does so many at a time, the smallest first', async () => {
  const { began, end, over, isOver } = rig([job('large', 9), job('mean', 5), job('small', 1)], 2)
  expect(began).toEqual(['small', 'mean'])
  await end('mean')
  expect(began).toEqual(['small', 'mean', 'large'])
  await end('large')
  expect(isOver()).toBe(false)
  await end('small')
  await over
})

it('begins a job once those it needs are over, however they ended, and nothing else waits for it', async () => {
  const jobs = [job('both', 0, 'a', 'b', 'nowhere'), job('a', 1), job('b', 2), job('c', 3)]
  const { began, end, over } = rig(jobs, 2)
  expect(began).toEqual(['a', 'b'])
  await end('b', new Error('no'))
  expect(began).toEqual(['a', 'b', 'c'])
  await end('a')
  expect(began).toEqual(['a', 'b', 'c', 'both'])
  await end('c')
  await end('both')
  await over
})

it('begins nothing more once it is to end', async () => {
  const { began, end, over, closing } = rig([job('a', 1), job('b', 2)], 1)
  closing.abort()
  await end('a')
  await over
  expect(began).toEqual(['a'])
})

it('is over where there is nothing to do, or only what waits for itself', async () => {
  await rig([], 2).over
  await rig([job('x', 1, 'y'), job('y', 1, 'x')], 2).over
})
