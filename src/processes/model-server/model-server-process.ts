import type { Service } from '../../lifecycle/service.js'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { repositoriesOf } from '../../config/load.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import type { TlsMaterial } from '../../config/tls-files.js'
import type { Socket } from 'node:net'
import { type UnreadableRepositories, unreadableText } from '../../repository/repository-folder.js'
import { toBase64 } from '../../lifecycle/base64.js'
import { nowMs } from '../../lifecycle/clock.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Log } from '../../lifecycle/log.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { ModelUpstream } from '../../api/model-proxy.js'
import { peerOf } from '../../api/peer.js'
import type {
  FromModelServer,
  LoadFailure,
  ModelServerBeat,
  ModelServerSetup,
  ToModelServer,
  ModelMetrics,
  ModelMetricsQuestion,
} from './protocol.js'
import { runRecordFile, takeRunRecord } from './run-record.js'
import { ModelInvalidError } from '../../repository/errors.js'
import { failuresIn, type ProviderUse } from '../../backends/onnxruntime/provider-uses.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { ModelServerHealth } from '../../api/gantry.js'
import type { ModelView } from '../../serving/model-view.js'
import type { ModelControl } from '../../serving/repository/load-planner.js'
import { openGrpcDoor } from './grpc-door.js'
import { GrpcListener, type OpenedGrpc } from './grpc-listener.js'
import { HeldOutModels } from './held-out-models.js'
import type { DeviceStates } from '../device-states.js'
import { createPrivateFolder, socketFolderOf } from '../private-folder.js'
import type { OwnMessage } from '../child-messages.js'
import type { EndOfProcess } from '../process-spec.js'
import { SupervisedProcess } from '../supervised-process.js'

/** From the start of the process until it listens; models are loaded after that. */
const listenAtMostMs = 60_000
/** Processor time that its loop may take without a beat: the longest part of any request takes a hundredth of that. */
const busyCpuMs = 30_000
/** Longest that whoever asks first waits for the process to listen. */
const wakeAtMostMs = 30_000
/** A scrape does not wait longer for figures of a process that is busy, nor does the page. */
const metricsAtMostMs = 1_000
/**
 * A young generation of 2 MB is collected every few large requests, and their memory, which lies outside of the heap, goes with it. At its
 * default it grows to 32 MB, is collected once in hundreds of them, and the memory brings full collections instead; at 1 MB small requests
 * pay for its collections (test/bench/model-server-peer.bench.ts).
 */
const v8Flags = ['--max-semi-space-size=2']
/** At the end, longest for closing models and connections. */
const stopAtMostMs = 2_000
const returnSocket = 'return.sock'

/** Settings whose repositories are folders, and what brings up to date those that mirror an object store. */
export type ServedRepositories = Readonly<{
  config: PipelineConfig
  areMirrored: boolean
  /** Never rejects. */
  refresh(): Promise<void>
}>

/**
 * The model server process under supervision. Cameras never wait for it. Beside cameras, and where the settings do not say when models
 * are loaded, it is started by the first client, so that what nobody asks for takes no memory.
 */
export class ModelServerProcess implements Service {
  /** Where it takes HTTP. The folder is this user's alone, so no token is asked there. */
  readonly socketPath: string
  /** Clients whose connections it serves itself. */
  readonly connections: NonNullable<ModelUpstream['connections']>
  readonly config: PipelineConfig
  readonly #tempDir: string
  /** The same, but where its path is too long for sockets. */
  readonly #socketDir: string
  readonly #process: SupervisedProcess<FromModelServer, ToModelServer>
  #beat: ModelServerBeat | undefined
  #besideCameras = false
  readonly #inputSizes = new Map<string, SizePx>()
  /** Decided once, at the start. */
  #control: ModelControl = 'none'
  /** Where the first client starts the process: its port of gRPC, of which all connections are given away. */
  #door: GrpcListener<OpenedGrpc> | undefined
  #cpuSeconds = 0
  /** What could not be loaded when models were first loaded. */
  readonly #firstLoads: Promise<readonly LoadFailure[]>
  #loaded: (failed: readonly LoadFailure[]) => void = () => undefined
  #unreadable: UnreadableRepositories
  readonly #heldOut = new HeldOutModels(nowMs)

  /** @param unreadable - repositories that cannot be read at the start. */
  constructor(
    readonly repositories: ServedRepositories,
    version: string,
    unreadable: UnreadableRepositories,
    readonly devices: DeviceStates,
    readonly metrics: ServiceMetrics,
    readonly log: Log,
    /** Of gRPC; undefined: without. */
    readonly certificates?: Readonly<{ current: TlsMaterial }>,
  ) {
    const { config } = repositories
    this.config = config
    this.#unreadable = unreadable
    this.#firstLoads = new Promise((resolve) => (this.#loaded = resolve))
    devices.onChange = () => this.#process.tell({ type: 'devices', devices: devices.used })
    this.#tempDir = createPrivateFolder()
    this.#socketDir = socketFolderOf(this.#tempDir, returnSocket)
    this.socketPath = join(this.#socketDir, 'http.sock')
    const returnPath = join(this.#socketDir, returnSocket)
    this.connections = {
      returnPath,
      adopt: (socket, head) => {
        const peer = peerOf(socket)
        const message: ToModelServer = { type: 'connection', head: toBase64(head), ...(peer && { peer }) }
        const give = () => this.#process.pass(message, socket)
        return this.wake()?.then(give) ?? give()
      },
    }
    const paths = { socketPath: this.socketPath, returnPath, tempDir: this.#tempDir }
    this.#process = new SupervisedProcess<FromModelServer, ToModelServer>(
      {
        title: 'model server',
        logFields: {},
        entry: entryPath(import.meta.url, './main.js'),
        v8Flags,
        setup: () => ({ type: 'setup', setup: this.#setup(version, paths) }) satisfies ToModelServer,
        loadAtMostMs: listenAtMostMs,
        silence: { busyCpuMs },
        unavailable: (reason) => new ServingError('UNAVAILABLE', `the model server is away: ${reason}`),
      },
      {
        ready: () => {
          // The files may have changed since it was told its setup.
          if (this.certificates) this.useTls(this.certificates.current)
          log.info(
            this.#door
              ? 'model server ready, models load as they are asked for'
              : 'model server ready, models load',
          )
        },
        gone: () => this.#gone(),
        startsAgainIn: (end) => (this.#findCulprit(end) ? 0 : undefined),
        message: (message) => this.#receive(message),
      },
      log,
    )
  }

  get health(): ModelServerHealth {
    const { state, pid, restarts, reason } = this.#door ? this.#process.wokenHealth : this.#process.health
    const { models = { total: 0, ready: 0 } } = this.#beat ?? {}
    const grpc = this.#door?.state ?? {
      port: this.#beat?.grpcPort ?? null,
      reason: this.#beat?.grpcReason ?? '',
    }
    const ofGrpc = grpc.reason === '' ? '' : `gRPC: ${grpc.reason}`
    return {
      state,
      pid,
      restarts,
      reason: reason || ofGrpc,
      models,
      grpcPort: grpc.port,
      providerFailures: failuresIn(this.providers),
    }
  }

  /** Where its models run, and where not though they should; none while it is away. */
  get providers(): readonly ProviderUse[] {
    return this.#beat?.providers ?? []
  }

  /** Of its models, how far those are whose batches get more sizes later, for people. Work is done meanwhile. */
  get warming(): readonly string[] {
    return (this.#beat?.warming ?? []).map(
      ({ model, version, warm, toCome }) =>
        `model ${model} version ${version} has warmed ${warm} of ${warm + toCome} sizes of batches`,
    )
  }

  /** What makes the service not ready: a repository that cannot be read. Known from the start on, and while the process is away. */
  get reasons(): readonly string[] {
    return [...this.#unreadable].map(([repository, reason]) => unreadableText(repository, reason))
  }

  get ready(): boolean {
    return this.#process.ready
  }

  /**
   * Resolves once it listens for the first time, or is stopped. Failures are logged and tried again. Where it is started by the first
   * client, that is once clients can come.
   */
  start(): Promise<void> {
    this.#control = this.config.models.control ?? (this.#besideCameras ? 'asked' : 'none')
    if (this.#control !== 'asked') return this.#process.start()
    const { host, grpcPort: port } = this.config.server
    const take = (socket: Socket): void => void this.#takeGrpc(socket)
    this.#door = new GrpcListener(() => openGrpcDoor({ host, port, take, log: this.log }), this.log)
    // It can serve.
    this.metrics.modelServerUp.set(1)
    return this.#door.start()
  }

  /** Resolves when all models that are to be loaded at the start serve. @throws ModelInvalidError where one does not, with the reasons */
  async allLoaded(): Promise<void> {
    const failed = await this.#firstLoads
    if (failed.length === 0) return
    const reasons = failed.map(({ name, reason }) => `${name}: ${reason}`)
    throw new ModelInvalidError(
      `${failed.length === 1 ? 'a model' : `${failed.length} models`} cannot be loaded at the start, and models.exitOnError is set: ${reasons.join('; ')}`,
      'Mend or remove what is named, or set models.exitOnError to false: then the others serve, and the index tells these reasons.',
    )
  }

  /**
   * Starts it where the first client does that.
   *
   * @returns undefined where there is nothing to wait for; else what resolves when it is ready, or is not in time.
   */
  wake(): Promise<void> | undefined {
    return this.#door && this.#process.wake(wakeAtMostMs)
  }

  async #takeGrpc(socket: Socket): Promise<void> {
    socket.on('error', () => undefined)
    await this.wake()
    if (!this.#process.pass({ type: 'grpcConnection' }, socket)) socket.destroy()
  }

  /** For gRPC connections that come from now on. */
  useTls(material: TlsMaterial): void {
    this.#process.tell({ type: 'tls', material })
  }

  /** There are cameras: from now on they get the processor first. */
  giveWay(): void {
    if (this.#besideCameras) return
    this.#besideCameras = true
    this.#process.tell({ type: 'giveWay' })
  }

  /** What cameras run their detector at; known to the process from its next start on. */
  camerasRun(detector: string, size: SizePx): void {
    this.#inputSizes.set(detector, size)
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

  /** When it loads models; known once it is started. */
  get control(): ModelControl {
    return this.#control
  }

  /** Its models and how they do; `undefined` while it is away, or does not tell in time. It is not woken for that. */
  async modelViews(): Promise<readonly ModelView[] | undefined> {
    if (!this.#process.ready) return undefined
    try {
      return (await this.#process.ask({ type: 'models' }, metricsAtMostMs)) as readonly ModelView[]
    } catch (error) {
      this.log.debug({ err: error }, 'the model server does not tell of its models')
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
    await this.#door?.stop(0)
    await this.#process.stop(stopAtMostMs)
    for (const dir of [this.#tempDir, this.#socketDir]) rmSync(dir, { recursive: true, force: true })
  }

  #gone(): void {
    this.#beat = undefined
    this.#cpuSeconds = 0
    this.metrics.modelServerUp.set(0)
    this.metrics.modelServerRestarts.inc()
  }

  /** @returns whether it starts again without what ended it. */
  #findCulprit({ reason, byItself, failure }: EndOfProcess): boolean {
    const record = takeRunRecord(runRecordFile(this.#tempDir))
    // What it was ended for from here need not be the doing of the models that were at work. Where a GPU failed, the record has only the
    // model whose run did that.
    const isOfDevice = failure?.code === 'GANTRY_DEVICE_FAILED'
    const isJudged = byItself || isOfDevice || (record?.over ?? null) !== null
    const culprit = isJudged ? this.#heldOut.ended(record, failure?.message ?? reason) : undefined
    if (culprit !== undefined) this.log.error(culprit, 'the model server starts again without a model')
    return culprit !== undefined
  }

  #receive(message: OwnMessage<FromModelServer>): void {
    switch (message.type) {
      case 'loaded':
        return this.#loaded(message.failed)
      case 'released':
        return this.#heldOut.release(message.model)
      case 'refresh':
        return void this.#refresh(message.refreshId)
      case 'deviceFailed':
        return void this.devices.failed(message.deviceId)
      case 'beat':
        return this.#measured(message.beat)
      default:
        return message satisfies never
    }
  }

  async #refresh(refreshId: number): Promise<void> {
    await this.repositories.refresh()
    this.#process.tell({ type: 'refreshed', refreshId })
  }

  #setup(
    version: string,
    paths: Pick<ModelServerSetup, 'socketPath' | 'returnPath' | 'tempDir'>,
  ): ModelServerSetup {
    const { config } = this
    const { repository: _, mirror: __, ...models } = config.models
    const { host, grpcPort, token, allowedOrigins, allowedHosts, maxRequestsPerMinute } = config.server
    return {
      repositories: repositoriesOf(config),
      hasMirrors: this.repositories.areMirrored,
      models: { ...models, control: this.#control },
      inference: config.inference,
      devices: this.devices.used,
      modelServer: config.modelServer,
      besideCameras: this.#besideCameras,
      inputSizes: [...this.#inputSizes],
      ...paths,
      access: { host, token, allowedOrigins, allowedHosts, maxRequestsPerMinute },
      grpc: { host, port: this.#door ? undefined : grpcPort, token },
      ...(this.certificates && { tls: this.certificates.current }),
      storePath: config.store.path,
      heldOut: this.#heldOut.all,
      version,
      pipeline: config.name,
      tracing: config.tracing,
      log: config.log,
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
