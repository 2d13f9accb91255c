import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { echoOnnx } from '../support/model-repository.js'
import { addModel } from '../support/onnx-models.js'
import { redisMissing, RedisServer } from '../support/redis.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

type Statistics = {
  model_stats: [{ inference_count: number; inference_stats: Record<string, { count: number }> }]
}

it.skipIf(redisMissing())(
  'answers are kept in Redis; while it is away every request runs, and none fails or waits for it',
  { timeout: 120_000 },
  async () => {
    const redis = await RedisServer.start()
    onTestFinished(() => redis.stop())
    const models = join(tempDir(), 'models')
    mkdirSync(models)
    addModel(models, 'cached', {
      onnx: echoOnnx('float32', ['batch', 1]),
      config: 'max_batch_size: 4 response_cache { enable: true }',
    })
    await using service = await TestService.start({
      pipeline: {
        models: { repository: models, cache: { redis: redis.url } },
        modelServer: { enabled: true },
        engines: 0,
      },
    })
    await until('models ready', async () => (await service.fetch('/v2/health/ready')).ok, 60_000)

    const ask = async (value: number) => {
      const inputs = [{ name: 'in0', datatype: 'FP32', shape: [1, 1], data: [value] }]
      const answer = await service.send<{ outputs: { data: number[] }[] }>(
        'POST',
        '/v2/models/cached/infer',
        {
          inputs,
        },
      )
      expect(answer.outputs[0]?.data).toEqual([value])
    }
    const counts = async () => {
      const [stats] = (await service.json<Statistics>('/v2/models/cached/stats')).model_stats
      const { cache_hit, fail } = stats.inference_stats
      return { runs: stats.inference_count, hits: cache_hit?.count, failed: fail?.count }
    }

    for (let left = 3; left > 0; left--) await ask(1)
    expect(await counts()).toEqual({ runs: 1, hits: 2, failed: 0 })

    await redis.kill()
    for (let left = 20; left > 0; left--) await ask(1)
    expect(await counts()).toEqual({ runs: 21, hits: 2, failed: 0 })

    await redis.start()
    await until('hits again', async () => {
      await ask(1)
      return (await counts()).hits !== 2
    })
    expect(await counts()).toMatchObject({ failed: 0 })
  },
)
