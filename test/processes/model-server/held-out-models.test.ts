import { expect, it } from 'vitest'
import { HeldOutModels } from '../../../src/processes/model-server/held-out-models.js'

const ended = (active: Readonly<Record<string, number>>) => ({ active, over: null })

function rig() {
  let nowMs = 0
  const models = new HeldOutModels(() => nowMs)
  return { models, pass: (ms: number) => (nowMs += ms) }
}

it('S11: holds out the model that a process says took too much memory', () => {
  const { models } = rig()
  expect(models.ended({ active: {}, over: { model: 'a', reason: 'too much' } }, 'SIGKILL')).toEqual({
    model: 'a',
    reason: 'too much',
  })
  expect(models.all).toEqual([['a', 'too much']])
  models.release('a')
  expect(models.all).toEqual([])
})

it('R28: holds out the model at work when the process was ended three times in ten minutes', () => {
  const { models, pass } = rig()
  expect(models.ended(ended({ a: 5 }), 'SIGSEGV')).toBeUndefined()
  pass(200_000)
  expect(models.ended(ended({ a: 0 }), 'SIGSEGV')).toBeUndefined()
  pass(200_000)
  expect(models.ended(ended({ a: 0 }), 'SIGSEGV')).toMatchObject({
    model: 'a',
    reason: expect.stringMatching(
      /ended 3 times within 600 s while it was at work, last by SIGSEGV/,
    ) as string,
  })
})

it('suspects the model that ran least of those that were always at work', () => {
  const { models } = rig()
  const names = [1, 2, 3].map(
    (round) => models.ended(ended({ busy: 1000 * round, bad: 2 }), 'SIGABRT')?.model,
  )
  expect(names).toEqual([undefined, undefined, 'bad'])
  // What the other was beside of does not count against it.
  expect([1, 2].map(() => models.ended(ended({ busy: 9 }), 'SIGABRT'))).toEqual([undefined, undefined])
})

it('forgets ends that lie long back, and those of a model that is tried again', () => {
  const { models, pass } = rig()
  const end = () => models.ended(ended({ a: 0 }), 'SIGKILL')
  end()
  end()
  pass(600_001)
  expect(end()).toBeUndefined()
  end()
  models.release('a')
  expect(end()).toBeUndefined()
})

it('judges nobody where nothing is known, or nothing ran', () => {
  const { models } = rig()
  for (const record of [undefined, ended({}), ended({}), ended({}), ended({ constructor: 0 })])
    expect(models.ended(record, 'SIGKILL')).toBeUndefined()
  expect(models.all).toEqual([])
})
