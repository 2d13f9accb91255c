/**
 * What the outbox costs a whole service. `npm run build:server && npx tsx test/bench/outbox-service.bench.ts [pairs] [seconds]`
 *
 * Two services with the same cameras by RTSP deliver to one broker: in one a result is accepted when it is committed, in the other it is
 * kept in memory (`store.durability.detections`). They take turns, with the cameras of the other switched off. `outbox_service_cpu`: CPU
 * of all processes of a service per result, the median of the ratios of neighbouring rounds with the interval that holds the true median
 * with 95 %. `outbox_service_wait`: from a frame's capture until a viewer has its result, p99 of all rounds, with the outbox and without.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { treeThreadCpuMs } from '../support/cpu.js'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { KafkaBroker } from '../support/kafka.js'
import { TestService } from '../support/service.js'
import { medianOf, quantile, report } from './bench.js'

const [pairs = 15, seconds = 15] = process.argv.slice(2).map(Number)
const [cameras, fps] = [4, 5]
/** Until the code around a frame is compiled, which takes V8 some thousand calls. */
const warmUpMs = 60_000
/** After cameras are on, until decoders are at their rate. */
const settleMs = 4_000

type Durability = 'outbox' | 'memory'
type Round = Readonly<{ cpuMsPerResult: number; waitsMs: readonly number[] }>

class Side {
  private constructor(readonly service: TestService) {}

  static async start(detections: Durability, broker: string, settings: readonly object[]): Promise<Side> {
    const pipeline = {
      cameras: settings,
      store: { durability: { detections } },
      sinks: { kafka: { brokers: [broker] } },
      modelServer: { enabled: false },
    }
    const side = new Side(await TestService.start({ pipeline }))
    await pause(warmUpMs)
    await side.#switchCameras(false)
    return side
  }

  async #switchCameras(enabled: boolean): Promise<void> {
    for (let index = 1; index <= cameras; index += 1) {
      await this.service.send('PATCH', `/api/v1/cameras/cam-${index}`, { enabled })
      await this.service.cameraIs(`cam-${index}`, enabled ? 'live' : 'disabled')
    }
    await pause(settleMs)
  }

  async round(): Promise<Round> {
    await this.#switchCameras(true)
    const stream = await this.service.stream()
    const waitsMs: number[] = []
    stream.socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) return
      const message = JSON.parse(data.toString('utf8')) as { type: string; capturedAt: string }
      if (message.type === 'detections') waitsMs.push(Date.now() - Date.parse(message.capturedAt))
    })
    const beforeMs = treeThreadCpuMs(this.service.pid)
    await pause(seconds * 1_000)
    const cpuMs = treeThreadCpuMs(this.service.pid) - beforeMs
    stream.close()
    await this.#switchCameras(false)
    return { cpuMsPerResult: cpuMs / waitsMs.length, waitsMs }
  }
}

const broker = await KafkaBroker.start()
const rtsp = await rtspCameras(cameras)
const settings = cameraSettings(rtsp, cameras, fps)
const sides = {
  outbox: await Side.start('outbox', broker.address, settings),
  memory: await Side.start('memory', broker.address, settings),
}
const waits: Record<Durability, number[]> = { outbox: [], memory: [] }
const costs: Record<Durability, number[]> = { outbox: [], memory: [] }
try {
  for (let pair = 0; pair < pairs; pair += 1) {
    const order: readonly Durability[] = pair % 2 === 0 ? ['outbox', 'memory'] : ['memory', 'outbox']
    for (const way of order) {
      const { cpuMsPerResult, waitsMs } = await sides[way].round()
      costs[way].push(cpuMsPerResult)
      waits[way].push(...waitsMs)
    }
    process.stderr.write(
      `\r${pair + 1}/${pairs}: ${costs.outbox.at(-1)?.toFixed(2)} and ${costs.memory.at(-1)?.toFixed(2)} ms a result   `,
    )
  }
  process.stderr.write('\n')
  const ratios = costs.outbox.map((cost, index) => cost / (costs.memory[index] ?? Number.NaN))
  report('outbox_service_cpu', 'x', {
    ...medianOf(ratios),
    outboxMs: medianOf(costs.outbox).median,
    memoryMs: medianOf(costs.memory).median,
    pairs,
  })
  const p99 = { outbox: quantile(waits.outbox, 0.99), memory: quantile(waits.memory, 0.99) }
  report('outbox_service_wait', 'ms', { more: p99.outbox - p99.memory, ...p99, results: waits.outbox.length })
} finally {
  for (const { service } of Object.values(sides)) await service[Symbol.asyncDispose]()
  await rtsp.stop()
  await broker.stop()
}
