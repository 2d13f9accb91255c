import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { PipelineConfig } from '../../config/pipeline.js'
import type { TlsMaterial } from '../../config/tls-files.js'
import { ListenError } from '../../api/errors.js'
import type { TakenPorts, TlsFront } from '../../api/tls-front.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Log } from '../../lifecycle/log.js'
import type { ProcessHealth } from '../../lifecycle/process-health.js'
import type { TlsMetrics } from '../../metrics/tls-metrics.js'
import type { OwnMessage } from '../child-messages.js'
import { createPrivateFolder } from '../private-folder.js'
import { SupervisedProcess } from '../supervised-process.js'
import {
  doorRefusals,
  type DoorBeat,
  type DoorPort,
  type DoorSetup,
  type FromDoor,
  type ToDoor,
} from './protocol.js'

const loadAtMostMs = 30_000
/** Longest that answers which are on their way may take to leave. */
const stopAtMostMs = 1_000
/** Connections beside those of viewers: model clients, pages, scrapes. Each takes two descriptors of the door. */
const otherConnections = 4_096
const metricsConnections = 256

/** The process that ends TLS under supervision. While it is away, clients find nobody on the ports; cameras go on. */
export class TlsDoorProcess implements TlsFront {
  readonly paths: TlsFront['paths']
  readonly #folder: string
  readonly #process: SupervisedProcess<FromDoor, ToDoor>
  #ports: readonly number[] | undefined
  #cpuSeconds = 0

  /** @param material - what it starts with, each time. */
  constructor(
    readonly config: PipelineConfig,
    readonly material: () => TlsMaterial,
    readonly metrics: TlsMetrics,
    readonly log: Log,
  ) {
    this.#folder = createPrivateFolder()
    this.paths = { http: join(this.#folder, 'door.sock'), metrics: join(this.#folder, 'metrics.sock') }
    // Counters that begin at 1 would hide the first from `increase()`.
    metrics.doorRestarts.inc(0)
    for (const cause of doorRefusals) metrics.refused.inc({ cause }, 0)
    this.#process = new SupervisedProcess<FromDoor, ToDoor>(
      {
        title: 'TLS door',
        logFields: {},
        entry: entryPath(import.meta.url, './main.js'),
        v8Flags: ['--single-threaded-gc'],
        setup: () => ({ type: 'setup', setup: this.#setup() }) satisfies ToDoor,
        loadAtMostMs,
        triesOnce: true,
        unavailable: (reason) => new ListenError('the ports of server.tls', reason),
      },
      {
        ready: ({ ports }) => {
          this.#ports = ports
          // The files may have changed since it was told its setup.
          this.use(this.material())
          metrics.doorUp.set(1)
        },
        gone: () => {
          this.#cpuSeconds = 0
          metrics.doorUp.set(0)
          metrics.connections.set(0)
          metrics.doorRestarts.inc()
        },
        message: (message) => this.#receive(message),
      },
      log,
    )
  }

  get health(): ProcessHealth {
    return this.#process.health
  }

  async open(): Promise<TakenPorts> {
    await this.#process.start()
    const [httpPort = 0, metricsPort = httpPort] = this.#ports ?? []
    return { httpPort, metricsPort }
  }

  use(material: TlsMaterial): void {
    this.#process.tell({ type: 'material', material })
  }

  async stop(): Promise<void> {
    await this.#process.stop(stopAtMostMs)
    this.metrics.doorUp.set(0)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #setup(): DoorSetup {
    const { host, httpPort, metricsPort, maxStreamClients } = this.config.server
    const ports: DoorPort[] = [
      {
        setting: 'httpPort',
        port: httpPort,
        socketPath: this.paths.http,
        maxConnections: maxStreamClients + otherConnections,
      },
    ]
    if (metricsPort === 0 || metricsPort !== httpPort)
      ports.push({
        setting: 'metricsPort',
        port: metricsPort,
        socketPath: this.paths.metrics,
        maxConnections: metricsConnections,
      })
    return {
      host,
      // One that is started again takes the ports that clients know.
      ports: ports.map((port, index) => ({ ...port, port: this.#ports?.[index] ?? port.port })),
      material: this.material(),
      log: this.config.log,
    }
  }

  #receive(message: OwnMessage<FromDoor>): void {
    switch (message.type) {
      case 'beat':
        return this.#measured(message.beat)
      default:
        return message.type satisfies never
    }
  }

  #measured({ rssBytes, cpuSeconds, loopP99Ms, connections, accepted, refused }: DoorBeat): void {
    const { metrics } = this
    metrics.doorRss.set(rssBytes)
    metrics.doorLoopP99.set(loopP99Ms / 1_000)
    metrics.doorCpu.inc(Math.max(0, cpuSeconds - this.#cpuSeconds))
    this.#cpuSeconds = cpuSeconds
    metrics.connections.set(connections)
    metrics.accepted.inc(accepted)
    for (const cause of doorRefusals) metrics.refused.inc({ cause }, refused[cause] ?? 0)
  }
}
