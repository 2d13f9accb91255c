import { expect, it } from 'vitest'
import { Turns } from '../../src/lifecycle/turns.js'

it('runs work of one key in the order it was asked for, and that of others beside it', async () => {
  const turns = new Turns()
  const done: string[] = []
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const first = turns.take('a', () => held.then(() => done.push('first')))
  const second = turns.take('a', async () => done.push('second'))
  await turns.take('b', async () => done.push('beside'))
  release()
  await Promise.all([first, second])
  expect(done).toEqual(['beside', 'first', 'second'])
})

it('goes on after work that failed', async () => {
  const turns = new Turns()
  const failed = turns.take('a', () => Promise.reject(new Error('no')))
  const next = turns.take('a', async () => 'yes')
  await expect(failed).rejects.toThrow('no')
  expect(await next).toBe('yes')
})
