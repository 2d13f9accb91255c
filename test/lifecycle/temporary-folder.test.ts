import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  socketBase,
  TemporaryFolderError,
  tryTemporaryFolder,
  whyNotWritable,
} from '../../src/lifecycle/temporary-folder.js'
import { thrownForOther } from '../support/other-user.js'
import { tempDir } from '../support/temp-dir.js'

const below = 'gantry-XXXXXX/socket'
/** The longest path of a socket is 107 bytes. */
const longest = 107 - below.length - 1

describe('where sockets lie', () => {
  it('is the temporary folder as long as the kernel takes their paths whole', () => {
    const base = `/${'x'.repeat(longest - 1)}`
    expect(socketBase(below, base, [])).toBe(base)
  })

  it('is another where the path is a byte too long, the first that can be used', () => {
    const other = tempDir()
    const base = `/${'x'.repeat(longest - 2)}\u00e9`
    expect(socketBase(below, base, [join(other, 'none'), other])).toBe(other)
    expect(readdirSync(other)).toEqual([])
  })

  it('is told by TMPDIR where there is none', () => {
    const base = `/${'x'.repeat(longest)}`
    expect(() => socketBase(below, base, ['/none'])).toThrow(/\(TMPDIR\) cannot be used: .*86 bytes/)
  })
})

describe('a temporary folder', () => {
  it('is tried without a trace, however long its path is', async () => {
    const long = join(tempDir(), 'x'.repeat(98))
    mkdirSync(long)
    await tryTemporaryFolder(long)
    expect(readdirSync(long)).toEqual([])
  })

  it('is refused by name where it is missing or a file', async () => {
    const dir = tempDir()
    writeFileSync(join(dir, 'file'), '')
    await expect(tryTemporaryFolder(join(dir, 'none'))).rejects.toThrow(
      `the temporary folder ${join(dir, 'none')} (TMPDIR) cannot be used: it is not there`,
    )
    const error = await tryTemporaryFolder(join(dir, 'file')).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TemporaryFolderError)
    expect(error).toMatchObject({ code: 'GANTRY_ENVIRONMENT' })
  })

  it('is refused by name where this user may not write', () => {
    const dir = tempDir()
    chmodSync(dir, 0o755)
    const thrown = thrownForOther(
      'lifecycle/temporary-folder.js',
      `tryTemporaryFolder(${JSON.stringify(dir)})`,
    )
    expect(thrown?.message).toContain(`${dir} (TMPDIR) cannot be used: this user has no permission for it`)
  })
})

describe('whether a folder can be written', () => {
  it('leaves nothing behind, also of folders that were not there', async () => {
    const dir = tempDir()
    expect(await whyNotWritable(join(dir, 'a/b'))).toBeUndefined()
    expect(existsSync(join(dir, 'a'))).toBe(false)
    mkdirSync(join(dir, 'c'))
    expect(await whyNotWritable(join(dir, 'c/d'))).toBeUndefined()
    expect(readdirSync(join(dir, 'c'))).toEqual([])
  })

  it('says why not', async () => {
    const dir = tempDir()
    writeFileSync(join(dir, 'file'), '')
    expect(await whyNotWritable(join(dir, 'file'))).toBe('it is not a folder, or lies below a file')
    expect(await whyNotWritable('/proc/none')).toBe('it is not there')
    expect(await whyNotWritable(join(dir, 'file/data'))).toBe('it is not a folder, or lies below a file')
  })
})
