import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { ageTable, RecordAges } from '../../src/store/record-ages.js'
import { Statements } from '../../src/store/statements.js'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const weekMs = 7 * dayMs

/** A file, and a machine whose time on goes by as the test says. */
function machine() {
  const statements = new Statements(new DatabaseSync(':memory:'))
  statements.db.exec(ageTable)
  let [boot, ms] = ['boot-1', 5 * hourMs]
  const run = (newest: number, wallMs: number) => {
    const ages = new RecordAges(statements, () => ({ boot, ms }))
    ages.begin(newest, weekMs, wallMs)
    return ages
  }
  return {
    run,
    passes: (forMs: number) => (ms += forMs),
    restarts: () => ([boot, ms] = [`${boot}'`, 60_000]),
    marks: () => statements.number('SELECT count(*) AS n FROM ages'),
  }
}

it('R145: a record is as old as the machine was on since, whatever its clock says', () => {
  const { run, passes } = machine()
  const ages = run(0, 1_000 * dayMs)
  passes(60_000)
  ages.mark(10, weekMs, 1_000 * dayMs)
  passes(60_000)
  // A year ahead, and back to 1970.
  ages.mark(20, weekMs, 1_365 * dayMs)
  expect(ages.expired(weekMs)).toBeUndefined()
  passes(60_000)
  ages.mark(30, weekMs, 0)
  expect(ages.expired(weekMs)).toBeUndefined()
  passes(weekMs - 120_000)
  expect(ages.expired(weekMs)).toMatchObject({ position: 0 })
  ages.dropOldest()
  expect(ages.expired(weekMs)).toMatchObject({ position: 10, beforeWallMs: 0 })
  ages.dropOldest()
  expect(ages.expired(weekMs)).toBeUndefined()
  passes(60_000)
  expect(ages.expired(weekMs)).toMatchObject({ position: 20 })
})

it('R145: between two runs the time counts that the machine was on, and none that it was off', () => {
  const { run, passes, restarts } = machine()
  run(0, 0).mark(10, weekMs, 0)
  passes(3 * dayMs)
  // What was written behind the last mark was so soon after it.
  expect(run(40, 0).expired(3 * dayMs - 70_000)).toMatchObject({ position: 0 })
  restarts()
  const after = run(40, 900 * dayMs)
  expect(after.expired(weekMs)).toBeUndefined()
  passes(4 * dayMs - 70_000)
  expect(after.expired(weekMs)).toBeUndefined()
  passes(140_000)
  expect(after.expired(weekMs)).toMatchObject({ position: 0 })
  after.dropOldest()
  expect(after.expired(weekMs)).toMatchObject({ position: 40 })
})

it('R145: starts of the machine that follow each other closely lose no time', () => {
  const { run, passes, restarts } = machine()
  run(5, 0)
  restarts()
  // Each time shorter than from one mark to the next.
  for (let start = 0; start < 100; start += 1) {
    run(5, 0)
    passes(50_000)
  }
  expect(run(5, 0).expired(99 * 50_000)).toMatchObject({ position: 5 })
})

it('keeps few marks, however many records there are', () => {
  const { run, passes, marks } = machine()
  const ages = run(0, 0)
  for (let second = 0; second < 3_600; second += 1) {
    passes(1_000)
    ages.mark(second, weekMs, second)
  }
  expect(marks()).toBeLessThan(70)
})
