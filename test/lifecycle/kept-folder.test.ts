import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { keptFolder } from '../../src/lifecycle/kept-folder.js'
import { tempDir } from '../support/temp-dir.js'

describe.skipIf(process.platform === 'win32')('a folder that is kept', () => {
  const nameIn = (base: string) => join(base, `gantry-kept-${process.getuid?.()}`)

  it("is this user's alone, and the same the next time", () => {
    const base = tempDir()
    const dir = keptFolder(base)
    expect(dir).toBe(nameIn(base))
    expect(statSync(dir!).mode & 0o777).toBe(0o700)
    expect(keptFolder(base)).toBe(dir)
  })

  it('is not taken where others can write to it, or made it something else', () => {
    const open = tempDir()
    mkdirSync(nameIn(open))
    chmodSync(nameIn(open), 0o777)
    const linked = tempDir()
    symlinkSync(tempDir(), nameIn(linked))
    const file = tempDir()
    writeFileSync(nameIn(file), '')
    expect([open, linked, file, '/no/such/folder'].map((base) => keptFolder(base))).toEqual(
      Array(4).fill(undefined),
    )
  })
})
