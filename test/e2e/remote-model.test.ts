import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { freePort } from '../support/free-port.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The configuration of docs/models.md, as it is there but for its addresses. */
function documented(addresses: string): string {
  const page = readFileSync(join(root, 'docs/models.md'), 'utf8')
  const [block] = /name: "\w+"\nbackend: "kserve"[^`]+/.exec(page) ?? []
  if (block === undefined) throw new Error('docs/models.md has no example of backend "kserve"')
  expect(block).toContain('"gpu-1:8001,gpu-2:8001"')
  return block.replace('gpu-1:8001,gpu-2:8001', addresses)
}

/** Grey, with a bright square: what a detector says of it does not matter, as long as both say the same. */
function picture(): object {
  const [height, width] = [90, 160]
  const data = Array.from({ length: height * width * 3 }, (_, index) =>
    index % (width * 3) < 150 && index < 40 * width * 3 ? 250 : 90,
  )
  return { inputs: [{ name: 'image', datatype: 'UINT8', shape: [height, width, 3], data }] }
}

function pixels(): number[] {
  return Array.from({ length: 416 * 416 * 3 }, (_, index) => (index * 7919) % 256)
}

async function serve(repository: string, load: string): Promise<TestService> {
  const service = await TestService.start({
    pipeline: {
      models: { repository, control: 'explicit', load: [load] },
      modelServer: { enabled: true },
      engines: 0,
    },
  })
  await until('models ready', async () => (await service.fetch('/v2/health/ready')).ok, 120_000)
  return service
}

/** The ppe ensemble, its detector elsewhere. */
function repositoryOf(config: string): string {
  const models = tempDir()
  mkdirSync(join(models, 'ppe_detect'))
  writeFileSync(join(models, 'ppe_detect/config.pbtxt'), config)
  mkdirSync(join(models, 'ppe'))
  const ppe = readFileSync(join(root, 'models/ppe/config.pbtxt'), 'utf8')
  const withoutGpuModel = ppe
    .replace(/^parameters \{ key: "gantry\.gpu_model".*$/m, '')
    .replace('ppe_detect_video', 'ppe_detect')
  writeFileSync(join(models, 'ppe/config.pbtxt'), withoutGpuModel)
  return models
}

it(
  'a heavy step may live on another server, with the configuration of the documentation',
  { timeout: 300_000 },
  async () => {
    await using there = await serve(join(root, 'models'), 'ppe_detect')
    const port = await until('gRPC', async () => (await there.ready()).modelServer?.grpcPort, 30_000)
    // One of the two addresses never answers.
    await using here = await serve(
      repositoryOf(documented(`127.0.0.1:${await freePort()},127.0.0.1:${port}`)),
      '*',
    )

    const ask = async (service: TestService, model: string, body: object) =>
      (await service.send<{ outputs: unknown }>('POST', `/v2/models/${model}/infer`, body)).outputs
    const whole = { inputs: [{ name: 'images', datatype: 'UINT8', shape: [1, 416, 416, 3], data: pixels() }] }
    expect(await ask(here, 'ppe_detect', whole)).toEqual(await ask(there, 'ppe_detect', whole))
    expect(await ask(here, 'ppe', picture())).toMatchObject([{ name: 'detections', datatype: 'FP32' }])
    const { model_stats } = await here.json<{ model_stats: { inference_count: number }[] }>(
      '/v2/models/ppe_detect/stats',
    )
    expect(model_stats[0]?.inference_count).toBe(2)
  },
)
