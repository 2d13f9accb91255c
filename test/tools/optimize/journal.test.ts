import { appendFileSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Journal } from '../../../src/tools/optimize/journal.js'
import { tempDir } from '../../support/temp-dir.js'

const pathIn = (dir = tempDir()) => join(dir, 'journal.jsonl')
const never = () => Promise.reject(new Error('it is known'))

it('makes a thing once, also after another start', async () => {
  const path = pathIn()
  const first = await Journal.open(path, 'model: a')
  expect(await first.once('trial 1', () => Promise.resolve({ perSecond: 4 }))).toEqual({ perSecond: 4 })
  expect(await first.once('trial 1', never)).toEqual({ perSecond: 4 })
  const second = await Journal.open(path, 'model: a')
  expect(second.size).toBe(1)
  expect(second.has('trial 1')).toBe(true)
  expect(await second.once('trial 1', never)).toEqual({ perSecond: 4 })
})

it('keeps nothing of what failed', async () => {
  const path = pathIn()
  const journal = await Journal.open(path, 'model: a')
  await expect(journal.once('trial 1', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect((await Journal.open(path, 'model: a')).has('trial 1')).toBe(false)
})

it.each(['{"key":"trial 2","val', '{', 'trial'])(
  'forgets a line that was cut in the middle, and goes on behind it: %s',
  async (cut) => {
    const path = pathIn()
    const first = await Journal.open(path, 'model: a')
    await first.once('trial 1', () => Promise.resolve(1))
    appendFileSync(path, cut)
    const second = await Journal.open(path, 'model: a')
    expect(await second.once('trial 2', () => Promise.resolve(2))).toBe(2)
    const third = await Journal.open(path, 'model: a')
    expect(await third.once('trial 1', never)).toBe(1)
    expect(await third.once('trial 2', never)).toBe(2)
  },
)

it('takes the place of another search that has measured nothing', async () => {
  const path = pathIn()
  await Journal.open(path, 'model: a')
  const other = await Journal.open(path, 'model: b')
  await other.once('trial 1', () => Promise.resolve(1))
  expect((await Journal.open(path, 'model: b')).has('trial 1')).toBe(true)
})

it('refuses one of another search, naming what differs, and changes nothing', async () => {
  const path = pathIn()
  await (await Journal.open(path, 'model: a\nthreads: 1')).once('trial 1', () => Promise.resolve(1))
  const before = readFileSync(path, 'utf8')
  await expect(Journal.open(path, 'model: a\nthreads: 2')).rejects.toMatchObject({
    code: 'GANTRY_OPTIMIZE_STATE',
    message: expect.stringContaining('begun with threads: 1, and this one has threads: 2') as string,
  })
  expect(readFileSync(path, 'utf8')).toBe(before)
})

it('R56: says that the disk is full, and keeps what there was', async () => {
  const path = pathIn()
  const journal = await Journal.open(path, 'model: a')
  await journal.once('trial 1', () => Promise.resolve(1))
  renameSync(path, `${path}.kept`)
  symlinkSync('/dev/full', path)
  await expect(journal.once('trial 2', () => Promise.resolve(2))).rejects.toMatchObject({
    code: 'GANTRY_ENVIRONMENT',
    message: expect.stringContaining('the disk is full') as string,
  })
  rmSync(path)
  renameSync(`${path}.kept`, path)
  const again = await Journal.open(path, 'model: a')
  expect([again.has('trial 1'), again.has('trial 2')]).toEqual([true, false])
})

it('says what is wrong where it cannot be written', async () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'file'), '')
  await expect(Journal.open(join(dir, 'file', 'journal.jsonl'), 'model: a')).rejects.toThrow(/journal.jsonl/)
})
