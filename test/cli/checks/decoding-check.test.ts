import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { cameraSchema } from '../../../src/config/camera.js'
import { inferenceSchema } from '../../../src/config/inference.js'
import { tempDir } from '../../support/temp-dir.js'

const camerasOf = (count: number, settings: object = { hwaccel: 'cuda' }) =>
  Array.from({ length: count }, (_, at) =>
    cameraSchema.parse({ id: `c${at}`, url: 'rtsp://192.0.2.1/s', ...settings }),
  )

/** What was asked of the machine before is known for ten seconds. */
async function checked(
  cameras: ReturnType<typeof camerasOf>,
  cards: string,
  { gpuMemoryShare = 0.25, devices = [0], filters = '... scale_cuda V->V resizer' } = {},
) {
  vi.resetModules()
  const dir = tempDir()
  writeFileSync(join(dir, 'nvidia-smi'), `#!/bin/sh\nprintf '%b' '${cards}'\n`, { mode: 0o755 })
  writeFileSync(join(dir, 'ffmpeg'), `#!/bin/sh\necho ' ${filters}'\n`, { mode: 0o755 })
  vi.stubEnv('PATH', `${dir}:${process.env['PATH'] ?? ''}`)
  onTestFinished(() => void vi.unstubAllEnvs())
  const { checkDecoding } = await import('../../../src/cli/checks/decoding-check.js')
  return checkDecoding({
    cameras,
    decoding: { gpuMemoryShare },
    inference: inferenceSchema.parse({ devices }),
  })
}

const t4 = (index: number, usedMiB: number) =>
  `${index}, GPU-0000000${index}, 0, 16384, ${usedMiB}, 30, 70, NVIDIA T4\\n`

describe('the memory that decoders take of GPUs', () => {
  it('is the sum of the cameras that are decoded there', async () => {
    expect(await checked(camerasOf(7), t4(0, 384))).toEqual([
      {
        subject: 'decoding on GPU 0',
        state: 'ok',
        detail: '7 x 560 MiB = 3.8 GiB of 4.0 GiB (0.25 of 16.0; 15.6 are free now), scaled there',
      },
    ])
  })

  it('says how many would be decoded in software', async () => {
    const [finding] = await checked(camerasOf(9), t4(0, 384))
    expect(finding).toMatchObject({
      state: 'warning',
      fix: expect.stringContaining('gpuMemoryShare') as string,
    })
    expect(finding?.detail).toMatch(/: 2 of 9 cameras would be decoded in software$/)
    const [full] = await checked(camerasOf(2), t4(0, 14_700), { gpuMemoryShare: 1 })
    expect(full?.detail).toMatch(/1\.6 are free now\): 1 of 2 cameras/)
  })

  it('is spread over the GPUs that are used, and names an ffmpeg that does not scale there', async () => {
    const found = await checked(camerasOf(9), t4(0, 0) + t4(1, 0), {
      devices: [0, 1],
      filters: '... scale V->V s',
    })
    expect(found.map(({ subject, state }) => [subject, state])).toEqual([
      ['decoding on GPU 0', 'ok'],
      ['decoding on GPU 1', 'ok'],
    ])
    expect(found[0]?.detail).toMatch(/^5 x 560 MiB .* no filter scale_cuda$/)
  })

  it("is nobody's business where no camera asks, and a warning where there is no card", async () => {
    expect(await checked(camerasOf(3, {}), t4(0, 0))).toEqual([])
    expect(await checked(camerasOf(3, { hwaccel: 'cuda', enabled: false }), t4(0, 0))).toEqual([])
    expect(await checked(camerasOf(3, { hwaccel: 'auto' }), '')).toEqual([])
    expect(await checked(camerasOf(3), '')).toMatchObject([{ subject: 'decoding', state: 'warning' }])
  })
})
