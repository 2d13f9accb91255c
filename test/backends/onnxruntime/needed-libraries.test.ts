import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { missingLibraries } from '../../../src/backends/onnxruntime/needed-libraries.js'
import { sharedLibrary } from '../../support/cuda-installation.js'
import { tempDir } from '../../support/temp-dir.js'

function library(needed: readonly string[], runpath?: string): string {
  const path = join(tempDir(), 'libprovider.so')
  writeFileSync(path, sharedLibrary(needed, runpath))
  return path
}

describe.skipIf(process.platform !== 'linux')('R25: missingLibraries', () => {
  afterEach(() => vi.unstubAllEnvs())

  it('are all that no folder of the loader has', () => {
    expect(missingLibraries(library(['libcublasLt.so.99', 'libc.so.6', 'libcudnn.so.98']))).toEqual([
      'libcublasLt.so.99',
      'libcudnn.so.98',
    ])
  })

  it('are not those in a folder that the library or LD_LIBRARY_PATH names', () => {
    const dir = tempDir()
    writeFileSync(join(dir, 'libcudnn.so.98'), '')
    vi.stubEnv('LD_LIBRARY_PATH', `/nowhere:${dir}`)
    expect(missingLibraries(library(['libcudnn.so.98', 'libcufft.so.98']))).toEqual(['libcufft.so.98'])
    vi.unstubAllEnvs()
    const beside = library(['libprovider.so', 'libcufft.so.98'], '$ORIGIN:/nowhere')
    expect(missingLibraries(beside)).toEqual(['libcufft.so.98'])
  })

  it('are none of what is no library, is cut off or is not there', () => {
    const text = join(tempDir(), 'text')
    writeFileSync(text, 'no library, and long enough to have the header of one: '.repeat(3))
    const cut = join(tempDir(), 'cut')
    writeFileSync(cut, sharedLibrary(['libcufft.so.98']).subarray(0, 150))
    for (const path of [text, cut, join(tempDir(), 'none')]) expect(missingLibraries(path)).toEqual([])
  })

  it('can be read of a program, which lacks none', () => {
    expect(missingLibraries(process.execPath)).toEqual([])
  })
})
