import { join } from 'node:path'
import { expect, it } from 'vitest'
import { changed, extendingPages, stepsOf } from '../support/extending.js'

const root = join(import.meta.dirname, '../..')

it('tells of everything that is meant to be added', () => {
  expect(extendingPages).toEqual(['backend', 'head', 'setting', 'sink', 'source'])
})

it.each(extendingPages)(
  'docs/extending/%s.md fits the code; `npx tsx test/ops/try-extending.ts` follows it to its end',
  (page) => {
    const steps = stepsOf(page)
    expect(steps[0]).toMatchObject({ kind: 'create', path: expect.stringMatching(/\.test\.ts$/) as string })
    expect(steps.at(-1)?.kind).toBe('run')
    const unfit = steps.flatMap((step) => {
      if (step.kind === 'run') return []
      try {
        changed(root, step)
        return []
      } catch (error) {
        return [(error as Error).message]
      }
    })
    expect(unfit).toEqual([])
  },
)
