import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cudaFor, nvidiaDriver, type CudaMajor } from '../../../src/cli/gpu/nvidia-driver.js'
import { tempDir } from '../../support/temp-dir.js'

/** The first lines of `nvidia-smi`. */
const smi = (driver: string, cuda: string) => `Fri Nov 27 11:41:19 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI ${driver}             Driver Version: ${driver}     CUDA Version: ${cuda}     |
|-----------------------------------------+------------------------+----------------------+`

function machine(said: string | undefined, kernel: string | undefined): [NodeJS.ProcessEnv, string] {
  const dir = tempDir()
  if (said !== undefined)
    writeFileSync(join(dir, 'nvidia-smi'), `#!/bin/sh\necho '${said}'\n`, { mode: 0o755 })
  const file = join(dir, 'version')
  if (kernel !== undefined) writeFileSync(file, `${kernel}\nGCC version:  gcc version 12.2.0 (Debian)\n`)
  return [{ PATH: dir }, file]
}

describe('nvidiaDriver', () => {
  it.each([
    [smi('580.159.03', '13.0'), undefined, '580.159.03', '13.0'],
    [smi('535.104.05', '12.2'), undefined, '535.104.05', '12.2'],
    [smi('570.86.10', 'N/A'), undefined, '570.86.10', '12.0'],
    [
      undefined,
      'NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021',
      '470.57.02',
      '11.0',
    ],
    [
      undefined,
      'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build',
      '580.65.06',
      '13.0',
    ],
  ])('reads %#', async (said, kernel, version, cuda) => {
    expect(await nvidiaDriver(...machine(said, kernel))).toEqual({ version, cuda })
  })

  it('is none where neither program nor kernel know one', async () => {
    expect(await nvidiaDriver(...machine(undefined, undefined))).toBeUndefined()
  })

  it('is none where the program does not reach it', async () => {
    const [env, file] = machine(undefined, undefined)
    writeFileSync(join(env.PATH ?? '', 'nvidia-smi'), '#!/bin/sh\necho no driver is loaded\nexit 9\n', {
      mode: 0o755,
    })
    expect(await nvidiaDriver(env, file)).toBeUndefined()
  })
})

describe('cudaFor', () => {
  const driver = (cuda: string) => ({ version: '580.159.03', cuda })

  it.each<[string | undefined, CudaMajor | undefined, CudaMajor]>([
    ['13.0', undefined, 13],
    ['14.1', undefined, 13],
    ['12.2', undefined, 12],
    ['13.0', 12, 12],
    [undefined, 13, 13],
  ])('with CUDA %s of the driver and %s asked for is %s', (cuda, asked, chosen) => {
    expect(cudaFor(cuda === undefined ? undefined : driver(cuda), asked)).toBe(chosen)
  })

  it.each<[string | undefined, CudaMajor | undefined, string]>([
    [undefined, undefined, 'no NVIDIA driver is found'],
    ['11.4', undefined, 'the NVIDIA driver 580.159.03 runs CUDA up to 11.4'],
    ['12.2', 13, 'the NVIDIA driver 580.159.03 runs CUDA up to 12.2, not 13'],
    ['11.4', 12, 'runs CUDA up to 11.4'],
  ])('with CUDA %s of the driver and %s asked for is refused', (cuda, asked, message) => {
    expect(() => cudaFor(cuda === undefined ? undefined : driver(cuda), asked)).toThrow(message)
  })
})
