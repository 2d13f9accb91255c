import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  checkRepositories,
  distinctRepositories,
  reasonOf,
  unreadableReason,
} from '../../src/inference/repository-folder.js'

function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'gantry-folder-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

describe('a folder of models', () => {
  it('can be read, empty or not', async () => {
    expect(await unreadableReason(tempDir())).toBeUndefined()
  })

  it('cannot be read where it is no folder', async () => {
    const dir = tempDir()
    writeFileSync(join(dir, 'file'), '')
    symlinkSync(join(dir, 'gone'), join(dir, 'link'))
    expect(await unreadableReason(join(dir, 'none'))).toBe('no such folder')
    expect(await unreadableReason(join(dir, 'file'))).toBe('it is a file, not a folder')
    expect(await unreadableReason(join(dir, 'link'))).toBe(
      `it is a link to ${join(dir, 'gone')}, which does not exist`,
    )
  })

  it.skipIf(process.getuid?.() === 0).each([0o000, 0o444])('cannot be read with mode %i', async (mode) => {
    const dir = tempDir()
    mkdirSync(join(dir, 'shut'))
    chmodSync(join(dir, 'shut'), mode)
    expect(await unreadableReason(join(dir, 'shut'))).toBe('this user may not read it')
  })

  it.each([
    ['EACCES', 'this user may not read it'],
    ['ESTALE', 'its network share was replaced or taken away'],
    ['EIO', 'EIO: i/o error'],
    ['EMFILE', 'no file descriptor is left for this process'],
  ])('tells %s in words', (code, words) => {
    expect(reasonOf('/models', Object.assign(new Error('EIO: i/o error'), { code }))).toContain(words)
  })

  it('is named among several, with every other that cannot be read', async () => {
    const dir = tempDir()
    const [one, two] = [join(dir, 'one'), join(dir, 'two')]
    await expect(checkRepositories([dir, one, two])).rejects.toMatchObject({
      code: 'GANTRY_MODEL_NOT_FOUND',
      message: `cannot read model repository ${one}: no such folder; cannot read model repository ${two}: no such folder`,
    })
    await expect(checkRepositories([dir])).resolves.toBeUndefined()
  })

  it('counts once, however often and by whatever path it is given', () => {
    const dir = tempDir()
    mkdirSync(join(dir, 'a'))
    symlinkSync(join(dir, 'a'), join(dir, 'b'))
    const [a, b, none] = [join(dir, 'a'), join(dir, 'b'), join(dir, 'none')]
    expect(distinctRepositories([a, b, `${a}/`, none, none])).toEqual([a, none])
  })
})
