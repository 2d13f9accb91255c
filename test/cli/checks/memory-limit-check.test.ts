import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { checkMemoryLimits } from '../../../src/cli/checks/memory-limit-check.js'
import { inferenceSchema } from '../../../src/config/inference.js'

const models = fileURLToPath(new URL('../../../models', import.meta.url))
const onCuda = [{ provider: 'cuda', state: 'runs', reason: '' }] as const
const onCpu = [{ provider: 'cpu', state: 'runs', reason: '' }] as const
const findings = (cuda: object, states: Parameters<typeof checkMemoryLimits>[3] = onCuda, ensemble = 'ppe') =>
  checkMemoryLimits(models, ensemble, inferenceSchema.parse({ cuda, maxBatchSize: 16 }), states)

it('says what a memory limit comes to, which is of each session', async () => {
  expect(await findings({ gpu_mem_limit: 2 * 1024 ** 3 })).toEqual([
    {
      subject: 'gpu_mem_limit',
      state: 'ok',
      detail:
        '2.0 GiB for each session: 2 instances of ppe_detect_video_fp32 with 3 sizes of batches (1, 4, 16) have 6, 12.0 GiB of a card at most',
    },
  ])
})

it('names one that the model does not fit into, and what to change', async () => {
  expect(await findings({ gpu_mem_limit: 4_000_000 })).toMatchObject([
    {
      state: 'failed',
      detail: expect.stringMatching(
        /which is under what the model needs: its file alone has \d{7}$/,
      ) as string,
      fix: expect.stringContaining('Raise gpu_mem_limit') as string,
    },
  ])
})

it('says nothing without a limit, without a GPU, or of a model that cannot be used', async () => {
  expect(await findings({})).toEqual([])
  expect(await findings({ gpu_mem_limit: 1 }, onCpu)).toEqual([])
  expect(await findings({ gpu_mem_limit: 1 }, onCuda, 'nobody')).toEqual([])
})
