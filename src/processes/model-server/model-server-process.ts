import type { Service } from '../../lifecycle/service.js'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { repositoriesOf } from '../../config/load.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { type UnreadableRepositories, unreadableText } from '../../repository/repository-folder.js'
import { toBase64 } from '../../lifecycle/base64.js'
import { nowMs } from '../../lifecycle/clock.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Log } from '../../lifecycle/log.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { ModelUpstream } from '../../api/model-proxy.js'
import type {
  FromModelServer,
  ModelServerBeat,
  ModelServerSetup,
  ToModelServer,
  ModelMetrics,
  ModelMetricsQuestion,
} from './protocol.js'
import { runRecordFile, takeRunRecord } from './run-record.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { ModelServerHealth } from '../../api/gantry.js'
import { HeldOutModels } from './held-out-models.js'
import { createPrivateFolder } from '../private-folder.js'
import { SupervisedProcess, type OwnMessage } from '../supervised-process.js'

/** From the start of the process until it listens; models are loaded after that. */
const listenAtMostMs = 60_000
/** Processor time that its loop may take without a beat: the longest part of any request takes a hundredth of that. */
const busyCpuMs = 30_000
/** A scrape does not wait longer for figures of a process that is busy. */
const metricsAtMostMs = 1_000
/** At the end, longest for closing models and connections. */
const stopAtMostMs = 2_000

/** The model server process under supervision. Cameras never wait for it. */
export class ModelServerProcess implements Service {
  /** Where it takes HTTP. The folder is this user's alone, so no token is asked there. */
  readonly socketPath: string
  /** Clients whose connections it serves itself. */
  readonly connections: NonNullable<ModelUpstream['connections']>
  readonly #tempDir: string
  readonly #process: SupervisedProcess<FromModelServer, ToModelServer>
  #beat: ModelServerBeat | undefined
  #besideCameras = false
  #cpuSeconds = 0
  #unreadable: UnreadableRepositories
  readonly #heldOut = new HeldOutModels(nowMs)

  /** @param unreadable - repositories that cannot be read at the start. */
  constructor(
    config: PipelineConfig,
    version: string,
    unreadable: UnreadableRepositories,
    readonly metrics: ServiceMetrics,
    readonly log: Log,
  ) {
    this.#unreadable = unreadable
    this.#tempDir = createPrivateFolder()
    this.socketPath = join(this.#tempDir, 'http.sock')
    const returnPath = join(this.#tempDir, 'return.sock')
    this.connections = {
      returnPath,
      adopt: (socket, head) => this.#process.pass({ type: 'connection', head: toBase64(head) }, socket),
    }
    const setup = setupOf(config, version, {
      socketPath: this.socketPath,
      returnPath,
      tempDir: this.#tempDir,
    })
    this.#process = new SupervisedProcess<FromModelServer, ToModelServer>(
      {
        title: 'model server',
        logFields: {},
        entry: entryPath(import.meta.url, './main.js'),
        setup: () =>
          ({
            type: 'setup',
            setup: { ...setup, besideCameras: this.#besideCameras, heldOut: this.#heldOut.all },
          }) satisfies ToModelServer,
        loadAtMostMs: listenAtMostMs,
        onFirstFailure: 'retry',
        silence: { busyCpuMs },
        unavailable: (reason) => new ServingError('UNAVAILABLE', `the model server is away: ${reason}`),
      },
      {
        ready: () => log.info('model server ready, models load'),
        gone: () => this.#gone(),
        isCured: (reason, byItself) => this.#findCulprit(reason, byItself),
        message: (message) => this.#receive(message),
      },
      log,
    )
  }

  get health(): ModelServerHealth {
    const { state, pid, restarts, reason } = this.#process.health
    const {
      models = { total: 0, ready: 0 },
      grpcPort = null,
      grpcReason = '',
      providerFailures = [],
    } = this.#beat ?? {}
    const why = reason !== '' ? reason : grpcReason === '' ? '' : `gRPC: ${grpcReason}`
    return { state, pid, restarts, reason: why, models, grpcPort, providerFailures }
  }

  /** What makes the service not ready: a repository that cannot be read. Known from the start on, and while the process is away. */
  get reasons(): readonly string[] {
    return [...this.#unreadable].map(([repository, reason]) => unreadableText(repository, reason))
  }

  get ready(): boolean {
    return this.#process.ready
  }

  /** Resolves once it listens for the first time, or is stopped. Failures are logged and tried again. */
  start(): Promise<void> {
    return this.#process.start()
  }

  /** There are cameras: from now on they get the processor first. */
  giveWay(): void {
    if (this.#besideCameras) return
    this.#besideCameras = true
    this.#process.tell({ type: 'giveWay' })
  }

  /** Metrics of its models; `undefined` while it is away. */
  async modelMetrics(question: ModelMetricsQuestion): Promise<ModelMetrics | undefined> {
    if (!this.#process.ready) return undefined
    try {
      return (await this.#process.ask(question, metricsAtMostMs)) as ModelMetrics
    } catch (error) {
      this.log.debug({ err: error }, 'metrics of the model server left out')
      return undefined
    }
  }

  /**
   * From here on it is not ready and takes nothing new, and says so. Resolves when what it has is answered, or after `withinMs`; one that
   * is away has nothing, and is not started again. Never rejects.
   */
  async drain(withinMs: number): Promise<void> {
    try {
      await this.#process.ask({ type: 'drain', withinMs }, withinMs + stopAtMostMs)
    } catch (error) {
      this.log.debug({ err: error }, 'model server has nothing to finish')
      await this.stop()
    }
  }

  /** Idempotent, never rejects. */
  async stop(): Promise<void> {
    await this.#process.stop(stopAtMostMs)
    rmSync(this.#tempDir, { recursive: true, force: true })
  }

  #gone(): void {
    this.#beat = undefined
    this.#cpuSeconds = 0
    this.metrics.modelServerUp.set(0)
    this.metrics.modelServerRestarts.inc()
  }

  /** @returns whether it starts again without what ended it. */
  #findCulprit(reason: string, byItself: boolean): boolean {
    const record = takeRunRecord(runRecordFile(this.#tempDir))
    // What it was ended for from here need not be the doing of the models that were at work.
    const isJudged = byItself || (record?.over ?? null) !== null
    const culprit = isJudged ? this.#heldOut.ended(record, reason) : undefined
    if (culprit !== undefined) this.log.error(culprit, 'the model server starts again without a model')
    return culprit !== undefined
  }

  #receive(message: OwnMessage<FromModelServer>): void {
    switch (message.type) {
      case 'released':
        return this.#heldOut.release(message.model)
      case 'beat':
        return this.#measured(message.beat)
      default:
        return message satisfies never
    }
  }

  #measured(beat: ModelServerBeat): void {
    this.#beat = beat
    this.#unreadable = new Map(beat.unreadable)
    const { rssBytes, cpuSeconds, loopP99Ms } = beat
    this.metrics.modelServerUp.set(1)
    this.metrics.modelServerRss.set(rssBytes)
    this.metrics.modelServerLoopP99.set(loopP99Ms / 1_000)
    this.metrics.modelServerCpu.inc(Math.max(0, cpuSeconds - this.#cpuSeconds))
    this.#cpuSeconds = cpuSeconds
  }
}

function setupOf(
  config: PipelineConfig,
  version: string,
  paths: Pick<ModelServerSetup, 'socketPath' | 'returnPath' | 'tempDir'>,
): Omit<ModelServerSetup, 'besideCameras' | 'heldOut'> {
  const { repository: _, ...models } = config.models
  const { host, grpcPort, token, allowedOrigins, allowedHosts } = config.server
  return {
    repositories: repositoriesOf(config),
    models,
    inference: config.inference,
    modelServer: config.modelServer,
    ...paths,
    access: { host, token, allowedOrigins, allowedHosts },
    grpc: { host, port: grpcPort, token },
    storePath: config.store.path,
    version,
    log: config.log,
  }
}
