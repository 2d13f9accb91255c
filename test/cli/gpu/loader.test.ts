import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { unloadableLibraries } from '../../../src/cli/gpu/loader.js'
import { sharedLibrary } from '../../support/cuda-installation.js'
import { tempDir } from '../../support/temp-dir.js'

it.skipIf(process.platform !== 'linux')(
  'tells which library the system cannot load, and for want of which',
  async () => {
    const dir = tempDir()
    writeFileSync(join(dir, 'libwhole.so.1'), sharedLibrary())
    writeFileSync(join(dir, 'libneedy.so.1'), sharedLibrary(['libnowhere.so.7']))
    const names = [
      'libwhole.so.1',
      'libneedy.so.1',
      'libabsent.so.2',
      'libc.so.6',
      join(dir, 'libneedy.so.1'),
    ]
    expect([...(await unloadableLibraries(names, { LD_LIBRARY_PATH: dir }))]).toEqual([
      ['libneedy.so.1', 'libnowhere.so.7'],
      ['libabsent.so.2', 'libabsent.so.2'],
      [join(dir, 'libneedy.so.1'), 'libnowhere.so.7'],
    ])
    expect((await unloadableLibraries(['libwhole.so.1'], {})).size).toBe(1)
  },
)
