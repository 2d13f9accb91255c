import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { listGpus } from '../../../src/backends/onnxruntime/gpu-list.js'
import { tempDir } from '../../support/temp-dir.js'

/** Puts a program in the place of `nvidia-smi`. */
function nvidiaSmi(script: string): void {
  const dir = tempDir()
  writeFileSync(join(dir, 'nvidia-smi'), `#!/bin/sh\n${script}\n`)
  chmodSync(join(dir, 'nvidia-smi'), 0o755)
  vi.stubEnv('PATH', `${dir}:${process.env.PATH}`)
}

afterEach(() => vi.unstubAllEnvs())

describe('GPUs of the machine', () => {
  it.each([
    ['0,1', [0, 1]],
    ['3', [0]],
    ['GPU-5e3a1f0c, GPU-7d424b7e', [0, 1]],
    ['', []],
  ])('are those that CUDA shows: %j', async (visible, expected) => {
    vi.stubEnv('CUDA_VISIBLE_DEVICES', visible)
    expect(await listGpus()).toEqual(expected)
  })

  it('are told by nvidia-smi where the driver has no files', async () => {
    vi.stubEnv('CUDA_VISIBLE_DEVICES', undefined)
    nvidiaSmi(
      `echo '0, GPU-aaaaaaaa-1, 0, 15360, 3, 9.90, 70.00, NVIDIA T4'; echo '1, GPU-bbbbbbbb-2, 0, 15360, 3, 9.90, 70.00, NVIDIA T4'`,
    )
    expect(await listGpus()).toEqual([0, 1])
  })

  it.each([`echo 'No devices were found'`, 'echo broken >&2; exit 9'])('are none: %s', async (script) => {
    vi.stubEnv('CUDA_VISIBLE_DEVICES', undefined)
    nvidiaSmi(script)
    expect(await listGpus()).toEqual([])
  })
})
