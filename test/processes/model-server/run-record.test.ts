import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import {
  RunRecordFile,
  runRecordFile,
  takeRunRecord,
} from '../../../src/processes/model-server/run-record.js'
import { tempDir } from '../../support/temp-dir.js'

it('has what was noted last, once', () => {
  const file = runRecordFile(tempDir())
  const record = new RunRecordFile(file)
  record.active(
    new Map([
      ['a-model-with-a-long-name', 1e9],
      ['b', 2],
    ]),
  )
  record.active(new Map([['b', 3]]))
  expect(takeRunRecord(file)).toEqual({ active: { b: 3 }, over: null })
  expect(takeRunRecord(file)).toBeUndefined()
})

it('tells the model that took too much', () => {
  const file = runRecordFile(tempDir())
  const record = new RunRecordFile(file)
  record.active(new Map([['a', 1]]))
  record.over('a', 'too much')
  expect(takeRunRecord(file)).toEqual({ active: {}, over: { model: 'a', reason: 'too much' } })
})

it('is nothing where there is no file, or not one of its own', () => {
  const file = runRecordFile(tempDir())
  expect(takeRunRecord(file)).toBeUndefined()
  writeFileSync(file, '{"active":')
  expect(takeRunRecord(file)).toBeUndefined()
})
