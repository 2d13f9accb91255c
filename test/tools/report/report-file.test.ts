import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkReportFile, writeReportFile } from '../../../src/tools/report/report-file.js'
import { tempDir } from '../../support/temp-dir.js'

it('writes a report whole, in place of an earlier one', () => {
  const dir = tempDir()
  const path = join(dir, 'a.csv')
  for (const text of ['first', 'second']) {
    checkReportFile(path)
    writeReportFile(path, text)
    expect(readFileSync(path, 'utf8')).toBe(text)
  }
  expect(readdirSync(dir)).toEqual(['a.csv'])
})

it('R50: says that the disk is full', () => {
  expect(() => writeReportFile('/dev/full', 'text')).toThrow(
    expect.objectContaining({
      code: 'GANTRY_ENVIRONMENT',
      message: expect.stringContaining('cannot write /dev/full: the disk is full') as string,
      hint: expect.stringContaining('Make room') as string,
    }) as Error,
  )
})

it.each([
  ['a folder that is not there', '/nowhere/a.csv', 'ENOENT'],
  ['a folder', '/tmp', 'it is a folder'],
])('looks before a run for %s', (_, path, problem) => {
  expect(() => checkReportFile(path)).toThrow(problem)
  expect(existsSync('/nowhere')).toBe(false)
})

it.skipIf(!existsSync('/dev/full'))(
  'keeps the report that was there, and no half one, on a full disk',
  () => {
    const dir = tempDir()
    const path = join(dir, 'a.csv')
    writeFileSync(path, 'before')
    symlinkSync('/dev/full', join(dir, `a.csv.${process.pid}.part`))
    expect(() => writeReportFile(path, 'after')).toThrow(/cannot write .*a\.csv: the disk is full/)
    expect(readFileSync(path, 'utf8')).toBe('before')
    expect(readdirSync(dir)).toEqual(['a.csv'])
  },
)
