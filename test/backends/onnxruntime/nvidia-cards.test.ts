import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type * as cards from '../../../src/backends/onnxruntime/nvidia-cards.js'
import { tempDir } from '../../support/temp-dir.js'

const alike = '0, GPU-aaaaaaaa-1, 40, 15360, 14541, 70.10, 70.00, NVIDIA T4'
const twoAlike = `${alike}
1, GPU-bbbbbbbb-2, 0, 15360, 3, 9.90, 70.00, NVIDIA T4`
const twoKinds = `${alike}
1, GPU-bbbbbbbb-2, 0, 23034, 3, 12.30, 72.00, NVIDIA L4`
const mib = 1024 ** 2

/** What was asked is kept: each test has a module of its own. */
async function withCards(lines: string): Promise<typeof cards> {
  const dir = tempDir()
  const program = join(dir, 'nvidia-smi')
  writeFileSync(program, `#!/bin/sh\ncat <<'END'\n${lines}\nEND\n`)
  chmodSync(program, 0o755)
  vi.stubEnv('PATH', `${dir}:${process.env.PATH}`)
  return import('../../../src/backends/onnxruntime/nvidia-cards.js')
}

describe.skipIf(process.platform === 'win32')('R25: gpuMemory', () => {
  beforeEach(() => {
    vi.resetModules()
    vi.stubEnv('CUDA_VISIBLE_DEVICES', undefined)
    vi.stubEnv('CUDA_DEVICE_ORDER', undefined)
  })
  afterEach(() => vi.unstubAllEnvs())

  it('is that of the card of the number', async () => {
    const { gpuMemory } = await withCards(twoAlike)
    expect(gpuMemory(0)).toMatchObject({ usedBytes: 14_541 * mib, totalBytes: 15_360 * mib })
    expect(gpuMemory(1)).toMatchObject({ usedBytes: 3 * mib })
    expect(gpuMemory(2)).toBeUndefined()
  })

  it('is that of the card that CUDA shows under the number', async () => {
    vi.stubEnv('CUDA_VISIBLE_DEVICES', '1')
    const { gpuCount, gpuMemory } = await withCards(twoAlike)
    expect(gpuMemory(0)).toMatchObject({ usedBytes: 3 * mib })
    expect(gpuCount()).toBe(1)
    vi.stubEnv('CUDA_VISIBLE_DEVICES', 'GPU-bbbbbbbb')
    expect(gpuMemory(0)).toMatchObject({ usedBytes: 3 * mib })
  })

  it('is not told where cards differ, and CUDA may count them in another order', async () => {
    const { gpuMemory } = await withCards(twoKinds)
    expect(gpuMemory(0)).toBeUndefined()
    vi.stubEnv('CUDA_DEVICE_ORDER', 'PCI_BUS_ID')
    expect(gpuMemory(1)).toMatchObject({ totalBytes: 23_034 * mib })
  })

  it('is not told of a card in parts, whose figures nobody may see', async () => {
    const { gpuMemory } = await withCards(alike.replace('14541', '[Insufficient Permissions]'))
    expect(gpuMemory(0)).toBeUndefined()
  })

  it('is not told where the program is not there, or says something else', async () => {
    const { gpuMemory } = await withCards('NVIDIA-SMI has failed because it could not talk to the driver.')
    expect(gpuMemory(0)).toBeUndefined()
    vi.stubEnv('PATH', '/nowhere')
    vi.resetModules()
    const without = await import('../../../src/backends/onnxruntime/nvidia-cards.js')
    expect(without.gpuMemory(0)).toBeUndefined()
  })
})
