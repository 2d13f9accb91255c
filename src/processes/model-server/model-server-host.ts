import type { Service } from '../../lifecycle/service.js'
import type { FastifyInstance } from 'fastify'
import { rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { TlsMaterial } from '../../config/tls-files.js'
import { InternalError } from '../../errors.js'
import { isBuiltInStep } from '../../ensemble/built-in-steps.js'
import { gpuIsInstalled, onnxRuntimeVersion } from '../../backends/onnxruntime/providers.js'
import { lookAtProvider } from '../../backends/onnxruntime/provider-look.js'
import { type ProviderUse, ProviderUses } from '../../backends/onnxruntime/provider-uses.js'
import { atMost } from '../../lifecycle/delay.js'
import { GrowingTries } from '../../lifecycle/growing-tries.js'
import type { Log } from '../../lifecycle/log.js'
import { memoryUse, ownThread } from '../../lifecycle/memory-use.js'
import { BackendRegistry } from '../../serving/backend-registry.js'
import { JsBackend } from '../../backends/js/js-backend.js'
import { KserveBackend } from '../../backends/kserve/kserve-backend.js'
import { type DeviceFailure, onnxRuntimeBackend } from '../../backends/onnxruntime/onnxruntime-backend.js'
import { LocalModelServer } from '../../serving/local-model-server.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import { MemoryAccounts } from '../../runtime/memory/memory-accounts.js'
import { type ModelView, modelViews } from '../../serving/model-view.js'
import { ModelOpener } from '../../serving/model-opener.js'
import { KeptLoads } from '../../serving/repository/kept-loads.js'
import { ModelManager } from '../../serving/repository/model-manager.js'
import { createProbe } from '../../serving/repository/probe/create-probe.js'
import { RepositoryPoller } from '../../serving/repository/repository-poller.js'
import { RepositoryWatch } from '../../serving/repository/repository-watch.js'
import { createResponseCache } from '../../serving/response-cache/create-response-cache.js'
import type { ResponseCache } from '../../serving/response-cache/response-cache.js'
import { BatchingFindings } from '../../runtime/batching-findings.js'
import { rateLimiterOf } from '../../runtime/rate-limit/rate-limiter.js'
import { timers } from '../../runtime/scheduler-clock.js'
import { ServingError } from '../../tensors/serving-error.js'
import { MemorySettings } from '../../serving/settings.js'
import { SharedRegions } from '../../serving/shared-memory/shared-regions.js'
import { SharedTensors } from '../../serving/shared-memory/shared-tensors.js'
import { RequestSpans } from '../../runtime/tracing/request-spans.js'
import { TraceFiles } from '../../runtime/tracing/trace-files.js'
import { Tracer } from '../../runtime/tracing/tracer.js'
import type { Tracing } from '../../tracing/spans.js'
import { surviveAcceptErrors } from '../../api/accept-errors.js'
import { bytesUnderWay, CodecPool } from '../../api/codec/codec-pool.js'
import { createKserveApp } from '../../api/kserve/kserve-app.js'
import { RequestsUnderWay } from '../../api/requests-under-way.js'
import { TokenGuesses } from '../../api/token-guesses.js'
import { AdoptedConnections } from './adopted-connections.js'
import { type GrpcServer, startGrpc } from '../../api/grpc/grpc-server.js'
import { GrpcTls } from '../../api/grpc/grpc-tls.js'
import { GrpcListener } from './grpc-listener.js'
import { ModelServerLog } from './model-server-log.js'
import type {
  LoadFailure,
  ModelMetrics,
  ModelMetricsQuestion,
  ModelServerBeat,
  ModelServerSetup,
  ModelWarming,
} from './protocol.js'
import { RunRecordFile, runRecordFile } from './run-record.js'
import { ServedCounts } from './served-counts.js'

/** Between two looks whether the repositories can be read. */
const watchMs = 2_000
/** Longest that requests in a model that is replaced may take to end. */
const drainMs = 60_000
/** At the end, longest for models, then for connections. */
const closeAtMostMs = 500
/** At the end, longest for the traces that are left. */
const traceWriteAtMostMs = 1_000
/** The same for spans: whoever takes them may be away. */
const traceSendAtMostMs = 500
/** From refusing the requests of a model that takes too much memory, or whose GPU failed, to the end of the process: they leave. */
const refusedWithinMs = 50

export type ModelServerEvents = Readonly<{
  /** A model that was held out is tried again. */
  released(model: string): void
  /** A client asks for a load: what is new of repositories in object stores is to be fetched. Never rejects. */
  refresh(): Promise<void>
  /** Nothing runs any more on a GPU in this process, which has to end. Called once. */
  deviceFailed(deviceId: number, reason: string): void
}>

/** Everything that lives in the model server process: models, their repository, and the two protocols in front of them. */
export class ModelServerHost implements Service {
  readonly server: LocalModelServer
  readonly #manager: ModelManager
  readonly #poller: RepositoryPoller | undefined
  readonly #watch: RepositoryWatch
  readonly #cache: ResponseCache | undefined
  readonly #app: FastifyInstance
  readonly #connections: AdoptedConnections
  readonly #requests: RequestsUnderWay
  readonly #grpc: GrpcListener<GrpcServer>
  readonly #tls: GrpcTls | undefined
  /** Of both protocols. */
  readonly #pool: CodecPool
  readonly #counts: ServedCounts
  readonly #tracer: Tracer
  readonly #uses: ProviderUses
  readonly #tries: GrowingTries
  readonly #ending = new AbortController()
  readonly #record: RunRecordFile
  /** Of groups that name none. */
  #devices: readonly number[]
  #deviceHasFailed = false

  constructor(
    readonly setup: ModelServerSetup,
    readonly log: Log,
    readonly events: ModelServerEvents,
    /** Absent: no spans are sent. */
    readonly tracing?: Tracing,
  ) {
    const { repositories, models, modelServer } = setup
    this.#uses = new ProviderUses(log)
    this.#tries = new GrowingTries({
      firstMs: setup.inference.retrySeconds * 1_000,
      isNeeded: () => this.#failing().length > 0,
      attempt: () => this.#tryProviders(),
    })
    this.#cache = createResponseCache(models.cache, log)
    this.#record = new RunRecordFile(runRecordFile(setup.tempDir))
    this.#devices = setup.devices
    const devices = (): readonly number[] => this.#devices
    const opener = new ModelOpener({
      backends: new BackendRegistry([
        onnxRuntimeBackend({
          ...setup.inference,
          get devices() {
            return devices()
          },
          onDeviceFailed: (failed) => this.#endOnDevice(failed),
          uses: this.#uses,
        }),
        new KserveBackend(modelServer.maxResponseBytes),
        new JsBackend(models.allowJsBackends),
      ]),
      find: (name, version) => this.#find(name, version),
      inputSizes: new Map(setup.inputSizes),
      cache: this.#cache,
      rateLimiter: rateLimiterOf(modelServer.rateLimit),
      memory: this.#accounts(),
      batching: new BatchingFindings(join(setup.tempDir, 'batching.json'), log),
      onHung: (reason) => endHung(reason, log),
      log,
    })
    this.#manager = new ModelManager({
      repositories,
      configName: models.configName,
      control: models.control,
      load: models.load,
      ...(models.loadsAtATime === undefined ? {} : { loadsAtATime: models.loadsAtATime }),
      strictReadiness: models.strictReadiness,
      onGpu: gpuIsInstalled(setup.inference.providers),
      isBuiltIn: isBuiltInStep,
      open: (context, before) => opener.open(context, before),
      probe: modelServer.probe.enabled ? this.#probe() : () => Promise.resolve(),
      uploadDir: uploadDirOf(setup),
      kept: new KeptLoads(uploadDirOf(setup), log),
      heldOut: new Map(setup.heldOut),
      onReleased: (model) => events.released(model),
      ...(setup.hasMirrors && { beforeLoad: () => events.refresh() }),
      drainMs,
      log,
    })
    this.#poller =
      models.control === 'poll'
        ? new RepositoryPoller(this.#manager, models.pollSeconds * 1_000, log)
        : undefined
    this.#watch = new RepositoryWatch(this.#manager, watchMs, log)
    const { dir, maxBytes } = modelServer.trace
    this.#tracer = new Tracer(
      dir === undefined ? undefined : new TraceFiles(dir, maxBytes, log),
      tracing && new RequestSpans(tracing),
    )
    const settings = new MemorySettings(
      (changed) => new ModelServerLog(log, setup.log.level).apply(changed),
      this.#tracer,
    )
    this.#counts = new ServedCounts(this.#manager)
    this.server = new LocalModelServer({
      name: modelServer.serverName,
      version: setup.version,
      manager: this.#manager,
      maxResponseBytes: modelServer.maxResponseBytes,
      sharedTensors: modelServer.sharedMemory
        ? new SharedTensors(new SharedRegions(), modelServer.maxRequestBytes)
        : undefined,
      settings,
      tracer: this.#tracer,
      metrics: () => this.#counts.text(),
    })
    const pool = new CodecPool({ maxBytes: bytesUnderWay(modelServer.maxRequestBytes) })
    this.#pool = pool
    const guesses = new TokenGuesses(setup.access.maxRequestsPerMinute)
    this.#app = createKserveApp(this.server, {
      maxBodyBytes: modelServer.maxRequestBytes,
      pool,
      log,
      takesUpgrade: (request) => this.#connections.takesUpgrade(request),
    })
    this.#connections = new AdoptedConnections(this.#app, { ...setup, guesses })
    this.#requests = new RequestsUnderWay(this.#app.server)
    this.#tls = setup.tls && new GrpcTls(setup.tls)
    const grpc = {
      ...setup.grpc,
      credentials: this.#tls,
      guesses,
      connections: modelServer.grpc,
      maxMessageBytes: modelServer.maxRequestBytes,
      pool,
      log,
    }
    this.#grpc = new GrpcListener(() => startGrpc(this.server, grpc), log)
  }

  /** Resolves when it listens. Models are loaded by {@link loadModels}. @throws ListenError, GantryError */
  async listen(): Promise<void> {
    await rm(this.setup.socketPath, { force: true })
    surviveAcceptErrors(this.#app.server, this.log)
    await this.#app.listen({ path: this.setup.socketPath })
    await this.#grpc.start()
  }

  /** Serves a client of control's port. @param head - what control read of it. */
  adopt(socket: Socket, head: Uint8Array): void {
    this.#connections.adopt(socket, head)
  }

  /** The same for a client of the port of gRPC, where control has that. */
  adoptGrpc(socket: Socket): void {
    this.#grpc.server?.adopt(socket)
  }

  /** For gRPC connections that come from now on. */
  useTls(material: TlsMaterial): void {
    this.#tls?.use(material)
  }

  /** Resolves when all models that are to be loaded by themselves serve or have a reason why not, with those that do not. */
  async loadModels(): Promise<readonly LoadFailure[]> {
    await this.#manager.start()
    this.#watch.start()
    this.#poller?.start()
    return this.#manager.failures()
  }

  state(): Pick<
    ModelServerBeat,
    'models' | 'unreadable' | 'grpcPort' | 'grpcReason' | 'providers' | 'warming'
  > {
    const wanted = this.#manager.records().filter((record) => record.wanted)
    const ready = wanted.filter((record) => record.ready).length
    const { port, reason } = this.#grpc.state
    return {
      models: { total: wanted.length, ready },
      unreadable: [...this.#manager.unreadable],
      grpcPort: port,
      grpcReason: reason,
      providers: this.#uses.all.filter(({ model }) => wanted.some(({ name }) => name === model)),
      warming: wanted.flatMap((record) => record.serving).flatMap(warmingOf),
    }
  }

  /** To be called now and then: models whose provider fails go back to it once it runs again. */
  lookAtProviders(): void {
    this.#tries.look()
  }

  /** Metrics of the models, with what was counted elsewhere. */
  metrics(question: ModelMetricsQuestion): Promise<ModelMetrics> {
    return this.#counts.metrics(question)
  }

  models(): readonly ModelView[] {
    return modelViews(this.#manager, this.#uses.all)
  }

  /** From here on it is not ready, and refuses what is new. Resolves when what was begun is answered, or after `withinMs`. */
  async drain(withinMs: number): Promise<void> {
    this.#watch.stop()
    this.#poller?.stop()
    this.#tries.stop()
    this.server.refuse()
    this.#manager.refuse()
    this.#connections.refuse()
    this.#requests.refuse()
    await Promise.all([this.#requests.answered(withinMs), this.#grpc.drain(withinMs)])
    await this.tracing?.flush(traceSendAtMostMs)
  }

  /** Idempotent, never rejects. What waits in a model is told that it is not answered any more; what runs is cut. */
  async stop(): Promise<void> {
    await this.drain(0)
    this.#ending.abort()
    await atMost(closeAtMostMs, this.#manager.stop(0))
    await atMost(closeAtMostMs, Promise.allSettled([this.#app.close(), this.#grpc.stop(closeAtMostMs)]))
    this.#pool.close()
    await atMost(closeAtMostMs, this.#cache?.close() ?? Promise.resolve())
    await Promise.all([
      atMost(traceWriteAtMostMs, this.#tracer.close()),
      this.tracing?.stop(traceSendAtMostMs),
    ])
  }

  /** Of models that serve elsewhere; one that does not serve is loaded again and again. */
  #failing(): readonly ProviderUse[] {
    return this.#uses.unused.filter(({ model }) => (this.#manager.record(model)?.serving.length ?? 0) > 0)
  }

  /** A small model in a process of its own tells whether it pays to open the models anew. */
  async #tryProviders(): Promise<void> {
    const { signal } = this.#ending
    const failing = this.#failing()
    const places = new Map(failing.map((use) => [`${use.provider} ${use.device}`, use]))
    for (const { provider, device } of places.values()) {
      const { state, reason } = await lookAtProvider(provider, Number(device), { signal })
      if (state !== 'runs') this.log.info({ provider, device, reason }, 'execution provider still fails')
      else await this.#renew(failing.filter((use) => use.provider === provider && use.device === device))
      if (signal.aborted) return
    }
  }

  async #renew(uses: readonly ProviderUse[]): Promise<void> {
    for (const model of new Set(uses.map((use) => use.model)))
      await this.#manager.renew(model).catch((error: unknown) => {
        if (!this.#ending.signal.aborted) this.log.error({ model, err: error }, 'model cannot be opened anew')
      })
  }

  #accounts(): MemoryAccounts {
    const { modelMemoryBytes, probe } = this.setup.modelServer
    const mainThread = ownThread()
    return new MemoryAccounts({
      limitBytes: modelMemoryBytes ?? probe.memoryBytes,
      use: memoryUse,
      ownThreads: () => [mainThread, ...this.#pool.threads],
      clock: timers,
      onActive: (models) => {
        if (!this.#deviceHasFailed) this.#record.active(models)
      },
      onOver: (model, reason) => this.#endOver(model, reason),
    })
  }

  /** What is loaded from now on runs on these GPUs where it names none. */
  useDevices(devices: readonly number[]): void {
    this.#devices = devices
  }

  /**
   * Only another process has a context on the GPU that works. The sessions there cannot be closed one by one either: what native code frees
   * in a context that is gone may end the process anyway.
   */
  #endOnDevice({ deviceId, model, reason }: DeviceFailure): void {
    if (this.#deviceHasFailed) return
    this.#deviceHasFailed = true
    this.#record.active(new Map([[model, 1]]))
    this.log.fatal({ model, reason }, 'GPU fails for good in this process, ending the model server')
    // What failed is answered first.
    setTimeout(() => this.events.deviceFailed(deviceId, reason), refusedWithinMs)
  }

  /** A thread cannot be ended inside a native run, so the process is: it is started again without the model. */
  #endOver(model: string, reason: string): void {
    this.#record.over(model, reason)
    this.log.fatal({ model, reason }, 'a model takes too much memory, ending the model server')
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), refusedWithinMs)
  }

  #find(name: string, version: number) {
    try {
      return this.#manager.find(name, version > 0 ? String(version) : '')
    } catch (error) {
      if (error instanceof ServingError) return undefined
      throw error
    }
  }

  #probe() {
    const { modelServer, storePath } = this.setup
    return createProbe({
      ...modelServer.probe,
      verdictsFile: join(storePath, 'model-probes.json'),
      runtime: onnxRuntimeVersion(),
      log: this.log,
      signal: this.#ending.signal,
    })
  }
}

function uploadDirOf({ tempDir }: ModelServerSetup): string {
  return join(tempDir, 'models')
}

/** A thread cannot be ended inside a native run, so the process is: it is started again. */
function endHung(reason: string, log: Log): never {
  log.fatal({ err: new InternalError(reason) }, 'a run of a model does not end, ending the model server')
  process.kill(process.pid, 'SIGKILL')
  throw new InternalError(reason)
}

function warmingOf({ name: model, version, sizes }: LoadedModel): readonly ModelWarming[] {
  const { warm = [], toCome = [] } = sizes ?? {}
  return toCome.length === 0 ? [] : [{ model, version, warm: warm.length, toCome: toCome.length }]
}
