/** The model server under clients that ask again as soon as they are answered, in processes of their own. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { planDetector } from '../../../src/detector/detector-plan.js'
import { cameraDetectorOf } from '../../support/camera-detector-of.js'
import { serviceCpuSeconds } from '../../support/service-cpu.js'
import { TestService } from '../../support/service.js'
import { until } from '../../support/until.js'
import { quantile } from '../bench.js'
import { grpcAddress } from '../tiny-model.js'
import { type Context, isOnCard, type Tell } from './measure.js'
import { nameOf, placesOf, protocols, type ServerJob } from './plan.js'

/** One process cannot write what a card takes. */
const clientProcesses = 4
const loadedWithinMs = 120_000
/** A beat of the model server, and more. */
const toldEveryMs = 1_500

type Answers = Readonly<{ n: number; allUs: readonly number[]; tookMs: number }>

/** @param has - whether what has that name has been taken already. */
export async function measureServer(
  job: ServerJob,
  context: Context,
  tell: Tell,
  has: (name: string) => boolean,
): Promise<void> {
  const { model, loads, seconds } = job
  const { input } = planDetector(cameraDetectorOf(context.repository, model))
  const { widthPx, heightPx } = input.size
  await using service = await TestService.start({
    pipeline: {
      engines: 0,
      models: { repository: context.repository, control: 'explicit', load: [model] },
      inference: { providers: [context.provider], deviceId: context.deviceId },
      modelServer: { nice: 0 },
      log: { format: 'json', level: 'warn' },
    },
  })
  const isReady = async () => (await service.fetch(`/v2/models/${model}/ready`)).ok
  await until(`model ${model}`, isReady, loadedWithinMs)
  await until(`sizes of batches of ${model}`, async () => !(await isWarming(service)), loadedWithinMs)
  const addresses = { HTTP: `127.0.0.1:${service.httpPort}`, gRPC: await grpcAddress(service) }
  const places = placesOf(job)
  for (const [at, { clients, batch }] of loads.entries())
    for (const [index, protocol] of protocols.entries()) {
      const place = places[at * protocols.length + index]!
      if (has(nameOf(place))) continue
      const asked = JSON.stringify({ model, input: input.name, shape: [batch, heightPx, widthPx, 3] })
      const before = {
        ...(await countsOf(service, model)),
        cpu: serviceCpuSeconds(service.pid),
        atMs: Date.now(),
      }
      const answers = await ask(protocol, addresses[protocol], seconds, asked, clients)
      const to = Date.now()
      const after = { ...(await countsOf(service, model)), cpu: serviceCpuSeconds(service.pid) }
      const latenciesMs = answers.flatMap(({ allUs }) => allUs.map((us) => us / 1e3))
      const requests = answers.reduce((sum, { n, tookMs }) => sum + (n * 1e3) / tookMs, 0)
      const cores = (part: 'modelServer' | 'control') =>
        ((after.cpu[part] - before.cpu[part]) * 1e3) / (to - before.atMs)
      tell(
        place,
        'pictures/s',
        {
          perSecond: requests * batch,
          requestsPerSecond: requests,
          p50Ms: quantile(latenciesMs, 0.5),
          p99Ms: quantile(latenciesMs, 0.99),
          meanBatch: (after.inferences - before.inferences) / (after.executions - before.executions),
          modelServerCores: cores('modelServer'),
          controlCores: cores('control'),
          gpuSeries: isOnCard(context) ? await gpuSeriesOf(service) : 0,
          clients,
          batch,
          n: latenciesMs.length,
        },
        [[to - seconds * 1_000, to]],
      )
    }
}

async function ask(
  protocol: (typeof protocols)[number],
  address: string,
  seconds: number,
  asked: string,
  clients: number,
): Promise<readonly Answers[]> {
  const script = fileURLToPath(new URL('../infer-clients.mjs', import.meta.url))
  const processes = Math.min(clients, clientProcesses)
  const each = String(Math.round(clients / processes))
  const args = [script, protocol.toLowerCase(), address, String(seconds), asked, each]
  const run = async () => {
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 * 1024 ** 2 })
    return JSON.parse(stdout) as Answers
  }
  return Promise.all(Array.from({ length: processes }, run))
}

/** Whether sizes of batches are to come. The model server tells once a second. */
async function isWarming(service: TestService): Promise<boolean> {
  await setTimeout(toldEveryMs)
  const { reasons } = await service.json<{ reasons: readonly string[] }>('/readyz')
  return reasons.some((reason) => reason.includes('sizes of batches'))
}

async function countsOf(
  service: TestService,
  model: string,
): Promise<{ inferences: number; executions: number }> {
  const { model_stats } = await service.json<{
    model_stats: readonly { inference_count: number | string; execution_count: number | string }[]
  }>(`/v2/models/${model}/stats`)
  const [stats] = model_stats
  return { inferences: Number(stats?.inference_count), executions: Number(stats?.execution_count) }
}

/** How many series of the card perf_analyzer finds. */
async function gpuSeriesOf(service: TestService): Promise<number> {
  return [...(await service.metrics()).matchAll(/^nv_gpu_/gm)].length
}
