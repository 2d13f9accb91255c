import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { addModel, redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'
import { swiftShader, vulkanPresent } from '../support/vulkan.js'

const child = fileURLToPath(new URL('../support/webgpu-child.mjs', import.meta.url))
if (!vulkanPresent)
  process.stderr.write(
    `SKIPPED: the GPU path through WebGPU, as there is no ${swiftShader} or no libvulkan1\n`,
  )

/** The native code of a GPU driver stays out of the test's own process. */
async function runChild(
  repositoryDir: string,
  providers: string,
  env: Record<string, string>,
): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, [child, repositoryDir, 'red', providers], {
    env: { PATH: process.env.PATH, ...env },
    timeout: 60_000,
  })
  return JSON.parse(stdout)
}

function repository(): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector('float32-nchw') })
  return dir
}

describe('the GPU path', () => {
  it.skipIf(!vulkanPresent)(
    'runs batches on WebGPU and finds what the CPU finds',
    { timeout: 90_000 },
    async () => {
      const answer = await runChild(repository(), 'cuda,webgpu,cpu', {
        VK_ICD_FILENAMES: swiftShader,
        XDG_RUNTIME_DIR: tempDir(),
      })
      const red = (score: number) => [
        {
          label: 'red',
          score: expect.closeTo(score, 3) as number,
          boxPx: { x1: 22, y1: 12, x2: 42, y2: 20 },
        },
      ]
      expect(answer).toMatchObject({
        info: {
          provider: 'webgpu',
          providerNotes: [expect.stringMatching(/^cuda: /)],
          instances: 1,
          maxBatchSize: 4,
        },
        results: [
          { cameraId: 'cam-0', detections: red(1) },
          { cameraId: 'cam-1', detections: red(0.8) },
          { cameraId: 'cam-2', detections: red(0.6) },
        ],
      })
    },
  )

  it('falls back to the CPU with the reason when there is no driver', { timeout: 90_000 }, async () => {
    const answer = await runChild(repository(), 'webgpu,cpu', {
      VK_ICD_FILENAMES: '/nowhere.json',
      XDG_RUNTIME_DIR: tempDir(),
    })
    expect(answer).toMatchObject({
      info: { provider: 'cpu', providerNotes: [expect.stringMatching(/^webgpu: .*adapter/)] },
    })
  })

  it('says that no provider can run when the only one fails', { timeout: 90_000 }, async () => {
    await expect(
      runChild(repository(), 'webgpu', { VK_ICD_FILENAMES: '/nowhere.json', XDG_RUNTIME_DIR: tempDir() }),
    ).rejects.toMatchObject({ stderr: expect.stringContaining('GANTRY_PROVIDER_FAILS') as string })
  })
})
