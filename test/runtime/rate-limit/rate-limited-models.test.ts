import { describe, expect, it } from 'vitest'
import { RateLimiter } from '../../../src/runtime/rate-limit/rate-limiter.js'
import { emptyModelConfig, type RateLimiterConfig } from '../../../src/repository/model-config.js'
import type { OpenedModel } from '../../../src/runtime/backend.js'
import { createScheduledModel } from '../../../src/runtime/create-scheduled-model.js'
import { StatisticsRecorder } from '../../../src/runtime/statistics-recorder.js'
import { fp32, inferRequest } from '../../support/scheduled-model.js'
import { silentLog } from '../../support/silent-log.js'

/** Models whose runs take a moment, over one limiter; tells how many runs were side by side at most. */
async function models(limiter: RateLimiter | undefined, limits: Readonly<Record<string, RateLimiterConfig>>) {
  let running = 0
  let most = 0
  const tensor = { name: 'x', datatype: 'FP32', shape: [1] } as const
  const open = (name: string, rate_limiter: RateLimiterConfig): OpenedModel => ({
    config: {
      ...emptyModelConfig,
      name,
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [1] }],
      output: [{ name: 'x', data_type: 'TYPE_FP32', dims: [1] }],
      instance_group: [
        { kind: 'KIND_CPU', count: 2, gpus: [], profile: [], secondary_devices: [], rate_limiter },
      ],
    },
    platform: 'test',
    inputs: [tensor],
    outputs: [tensor],
    start: () =>
      Promise.resolve({
        execute: async (batch) => {
          most = Math.max(most, ++running)
          await new Promise((resolve) => setImmediate(resolve))
          running--
          return {
            results: batch.map(({ inputs }) => [...inputs.values()]),
            times: { computeInputNs: 0, computeInferNs: 1, computeOutputNs: 0 },
          }
        },
        close: () => Promise.resolve(),
      }),
    close: () => Promise.resolve(),
  })
  const loaded = await Promise.all(
    Object.entries(limits).map(([name, limit]) =>
      createScheduledModel(open(name, limit), {
        name,
        version: '1',
        modelDir: '/nowhere',
        statistics: new StatisticsRecorder(name, '1'),
        log: silentLog(),
        onHung: () => undefined,
        rateLimiter: limiter,
      }),
    ),
  )
  return { loaded, most: () => most }
}

const one = { resources: [{ name: 'R', count: 1 }] }
const request = () => inferRequest([fp32('x', [1], [1])])

describe('models with a rate_limiter', () => {
  it('run one at a time where they share a resource, and all are answered', async () => {
    const { loaded, most } = await models(new RateLimiter(), { a: one, b: one })
    const answers = loaded.flatMap((model) => Array.from({ length: 20 }, () => model.infer(request())))
    expect(await Promise.all(answers)).toHaveLength(40)
    expect(most()).toBe(1)
    expect(loaded.map((model) => model.statistics().inference.queue.count)).toEqual([20, 20])
    await Promise.all(loaded.map((model) => model.stop(1_000)))
  })

  it('run as many side by side as the resource has', async () => {
    const { loaded, most } = await models(new RateLimiter([{ name: 'R', count: 3 }]), { a: one, b: one })
    await Promise.all(loaded.flatMap((model) => Array.from({ length: 20 }, () => model.infer(request()))))
    expect(most()).toBe(3)
  })

  it('run on all their instances while the limiter is off', async () => {
    const { loaded, most } = await models(undefined, { a: one, b: one })
    await Promise.all(loaded.flatMap((model) => Array.from({ length: 20 }, () => model.infer(request()))))
    expect(most()).toBeGreaterThanOrEqual(4)
  })

  it('fail to load when a resource is too small for them', async () => {
    await expect(
      models(new RateLimiter([{ name: 'R', count: 1 }]), { a: { resources: [{ name: 'R', count: 2 }] } }),
    ).rejects.toThrow('the minimum required count is 2')
  })

  it('answer requests that wait for a turn when the model is closed', async () => {
    const { loaded } = await models(new RateLimiter(), { a: one, b: one })
    const answers = loaded.flatMap((model) => Array.from({ length: 50 }, () => model.infer(request())))
    const closed = loaded[0]?.stop(0)
    const settled = await Promise.allSettled(answers)
    await closed
    expect(settled.slice(50).every(({ status }) => status === 'fulfilled')).toBe(true)
  })
})
