import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  checkRepositories,
  distinctRepositories,
  folderReason,
  unreadableReason,
} from '../../src/repository/repository-folder.js'
import { otherUserWorks, thrownForOther } from '../support/other-user.js'
import { tempDir } from '../support/temp-dir.js'

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

  describe.skipIf(!otherUserWorks)('of another user', () => {
    const seenBy = (mode: number) => {
      const dir = tempDir()
      chmodSync(dir, 0o755)
      mkdirSync(join(dir, 'shut'))
      chmodSync(join(dir, 'shut'), mode)
      const call = `checkRepositories([${JSON.stringify(join(dir, 'shut'))}])`
      return thrownForOther('repository/repository-folder.js', call)
    }

    it.each([0o000, 0o444])('cannot be read with mode %i', (mode) => {
      expect(seenBy(mode)).toMatchObject({
        code: 'GANTRY_MODEL_NOT_FOUND',
        message: expect.stringContaining('this user may not read it') as string,
      })
    })

    it('can be read with mode 0755', () => {
      expect(seenBy(0o755)).toBeUndefined()
    })
  })

  it.each([
    ['EACCES', 'this user may not read it'],
    ['ESTALE', 'its network share was replaced or taken away'],
    ['EIO', 'the disk or network share gave an error'],
    ['ENOTCONN', 'as the system says it'],
    ['EMFILE', 'no file descriptor is left for this process'],
  ])('tells %s in words', (code, words) => {
    expect(folderReason('/models', Object.assign(new Error('as the system says it'), { code }))).toContain(
      words,
    )
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
