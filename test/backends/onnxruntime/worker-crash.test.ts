import { fileURLToPath } from 'node:url'
import { dirname } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { onnxRuntimeBackend } from '../../../src/backends/onnxruntime/onnxruntime-backend.js'
import type { InferRequest } from '../../../src/runtime/infer.js'
import { ModelManager } from '../../../src/serving/repository/model-manager.js'
import { createScheduledModel } from '../../../src/runtime/create-scheduled-model.js'
import type { ScheduledModel } from '../../../src/runtime/scheduled-model.js'
import type { ServingError } from '../../../src/tensors/serving-error.js'
import { StatisticsRecorder } from '../../../src/runtime/statistics-recorder.js'
import { echoOnnx } from '../../support/model-repository.js'
import { addModel } from '../../support/onnx-models.js'
import { inferRequest } from '../../support/scheduled-model.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

const workerEntry = fileURLToPath(new URL('../../support/fragile-onnx-worker.mjs', import.meta.url))
const backend = onnxRuntimeBackend({ providers: ['cpu'], devices: [0], intraOpThreads: 1, workerEntry })
const log = silentLog()

function requestOf(first: number): InferRequest {
  return inferRequest([
    { name: 'in0', datatype: 'UINT8', shape: [4], data: Uint8Array.from([first, 1, 2, 3]) },
  ])
}
const sound = requestOf(1)
const deadly = requestOf(201)

/** A manager of one model with two instances, whose threads end when they are told to. */
async function served() {
  const repository = tempDir()
  addModel(repository, 'm', {
    onnx: echoOnnx('uint8', [4]),
    config: 'name: "m" backend: "onnxruntime" max_batch_size: 0 instance_group { kind: KIND_CPU count: 2 }',
  })
  const models: ScheduledModel[] = []
  const manager = new ModelManager({
    repositories: [repository],
    control: 'explicit',
    load: ['m'],
    isBuiltIn: () => false,
    open: async (context) => {
      const { name, version, versionDir } = context
      const model = await createScheduledModel(await backend.open(context), {
        name,
        version,
        modelDir: dirname(versionDir),
        statistics: new StatisticsRecorder(name, version),
        log,
        onHung: (reason) => {
          throw new Error(reason)
        },
      })
      models.push(model)
      return model
    },
    probe: () => Promise.resolve(),
    uploadDir: tempDir(),
    drainMs: 1_000,
    log,
  })
  onTestFinished(() => manager.stop())
  await manager.start()
  return { manager, models, infer: (request: InferRequest) => manager.find('m', '').infer(request) }
}

/** `answered`, or the status of the error. */
function fateOf(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'answered',
    (error: unknown) => (error as ServingError).status,
  )
}

describe('a thread of a model that ends', () => {
  it('R10: fails its requests with INTERNAL under load, while the others go on and another thread starts', async () => {
    const { models, infer } = await served()
    const { instances } = models[0]!.parts
    const fates: string[] = []
    let driving = true
    const client = async () => {
      while (driving) fates.push(await fateOf(infer(sound)))
    }
    const clients = Array.from({ length: 4 }, client)
    await until('requests are answered', () => fates.length > 50)
    expect(await fateOf(infer(deadly))).toBe('INTERNAL')
    const before = fates.length
    await until('the other instance answers', () => fates.length > before + 20)
    await until('both instances are up', () => instances.ready === 2, 3_000)
    driving = false
    await Promise.all(clients)
    const lost = fates.filter((fate) => fate !== 'answered')
    expect(new Set([...lost, 'INTERNAL'])).toEqual(new Set(['INTERNAL']))
    // Those on their way to the thread that ended: it takes two at most.
    expect(lost.length).toBeLessThanOrEqual(1)
  })

  it('R10: makes the model UNAVAILABLE with the reason when it keeps ending, until it is loaded again', async () => {
    const { manager, models, infer } = await served()
    for (let deaths = 1; deaths <= 5; deaths++) {
      expect(await fateOf(infer(deadly))).toBe('INTERNAL')
      if (deaths < 5) await until('both instances are up', () => models[0]!.parts.instances.ready === 2)
    }
    await until('it is given up', () => !manager.isReady('m', ''))
    expect(manager.ready).toBe(false)
    expect(manager.index(false)).toEqual([
      {
        name: 'm',
        version: '1',
        state: 'UNAVAILABLE',
        reason: expect.stringMatching(
          /^its instances ended 5 times within 60 s: inference instance m#\d ended with code 7$/,
        ) as string,
      },
    ])
    await expect(models[0]!.infer(sound)).rejects.toMatchObject({ status: 'UNAVAILABLE' })
    await manager.load('m', { config: undefined, files: new Map() })
    expect([manager.isReady('m', ''), manager.ready]).toEqual([true, true])
    expect(await fateOf(infer(sound))).toBe('answered')
  })
})
