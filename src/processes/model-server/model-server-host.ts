import type { Service } from '../../lifecycle/service.js'
import type { FastifyInstance } from 'fastify'
import { rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import ort from '../../backends/onnxruntime/onnxruntime.js'
import { InternalError } from '../../errors.js'
import { isBuiltInStep } from '../../ensemble/built-in-steps.js'
import { gpuIsInstalled } from '../../backends/onnxruntime/providers.js'
import { failuresOf } from '../../backends/onnxruntime/provider-notes.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { memoryUse, ownThread } from '../../lifecycle/memory-use.js'
import { BackendRegistry } from '../../serving/backend-registry.js'
import { JsBackend } from '../../backends/js/js-backend.js'
import { KserveBackend } from '../../backends/kserve/kserve-backend.js'
import { onnxRuntimeBackend } from '../../backends/onnxruntime/onnxruntime-backend.js'
import { LocalModelServer } from '../../serving/local-model-server.js'
import { recorderOf } from '../../serving/metrics/recorder-of.js'
import { MemoryAccounts } from '../../runtime/memory/memory-accounts.js'
import { ServingMetrics } from '../../serving/metrics/serving-metrics.js'
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
import {
  addUp,
  beganAnew,
  counted,
  type CountedStatistics,
  isSameModel,
} from '../../runtime/counted-statistics.js'
import { timers } from '../../runtime/scheduler-clock.js'
import type { StatisticsRecorder } from '../../runtime/statistics-recorder.js'
import { ServingError } from '../../tensors/serving-error.js'
import { MemorySettings } from '../../serving/settings.js'
import { TraceFiles } from '../../runtime/tracing/trace-files.js'
import { Tracer } from '../../runtime/tracing/tracer.js'
import { surviveAcceptErrors } from '../../api/accept-errors.js'
import { bytesUnderWay, CodecPool } from '../../api/codec/codec-pool.js'
import { createKserveApp } from '../../api/kserve/kserve-app.js'
import { RequestsUnderWay } from '../../api/requests-under-way.js'
import { AdoptedConnections } from './adopted-connections.js'
import { GrpcListener } from './grpc-listener.js'
import { ModelServerLog } from './model-server-log.js'
import type { ModelMetrics, ModelMetricsQuestion, ModelServerBeat, ModelServerSetup } from './protocol.js'
import { RunRecordFile, runRecordFile } from './run-record.js'

/** Between two looks whether the repositories can be read. */
const watchMs = 2_000
/** Longest that requests in a model that is replaced may take to end. */
const drainMs = 60_000
/** At the end, longest for models, then for connections. */
const closeAtMostMs = 500
/** At the end, longest for the traces that are left. */
const traceWriteAtMostMs = 1_000
/** From refusing the requests of a model that takes too much memory to the end of the process: they leave, and little more is taken. */
const refusedWithinMs = 50

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
  readonly #grpc: GrpcListener
  /** Of both protocols. */
  readonly #pool: CodecPool
  /** What was counted elsewhere of models, when metrics were last asked for. */
  #forCameras: readonly CountedStatistics[] = []
  readonly #tracer: Tracer
  /** By model, of its last load. */
  readonly #providerFailures = new Map<string, readonly string[]>()
  readonly #ending = new AbortController()
  readonly #record: RunRecordFile

  /** @param released - a model that was held out is tried again. */
  constructor(
    readonly setup: ModelServerSetup,
    readonly log: Log,
    released: (model: string) => void,
  ) {
    const { repositories, models, modelServer } = setup
    this.#cache = createResponseCache(models.cache, log)
    this.#record = new RunRecordFile(runRecordFile(setup.tempDir))
    const opener = new ModelOpener({
      backends: new BackendRegistry([
        onnxRuntimeBackend({
          ...setup.inference,
          onNotes: (model, notes) => this.#providerFailures.set(model, failuresOf(notes)),
        }),
        new KserveBackend(modelServer.maxResponseBytes),
        new JsBackend(models.allowJsBackends),
      ]),
      find: (name, version) => this.#find(name, version),
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
      onGpu: gpuIsInstalled(setup.inference.providers),
      isBuiltIn: isBuiltInStep,
      open: (context, before) => opener.open(context, before),
      probe: modelServer.probe.enabled ? this.#probe() : () => Promise.resolve(),
      uploadDir: uploadDirOf(setup),
      kept: new KeptLoads(uploadDirOf(setup), log),
      heldOut: new Map(setup.heldOut),
      onReleased: released,
      drainMs,
      log,
    })
    this.#poller =
      models.control === 'poll'
        ? new RepositoryPoller(this.#manager, models.pollSeconds * 1_000, log)
        : undefined
    this.#watch = new RepositoryWatch(this.#manager, watchMs, log)
    const { dir, maxBytes } = modelServer.trace
    this.#tracer = new Tracer(dir === undefined ? undefined : new TraceFiles(dir, maxBytes, log))
    const settings = new MemorySettings(
      (changed) => new ModelServerLog(log, setup.log.level).apply(changed),
      this.#tracer,
    )
    const metrics = new ServingMetrics(() => this.#counts())
    this.server = new LocalModelServer({
      version: setup.version,
      manager: this.#manager,
      maxResponseBytes: modelServer.maxResponseBytes,
      settings,
      tracer: this.#tracer,
      metrics: () => metrics.text(),
    })
    const pool = new CodecPool({ maxBytes: bytesUnderWay(modelServer.maxRequestBytes) })
    this.#pool = pool
    this.#app = createKserveApp(this.server, { maxBodyBytes: modelServer.maxRequestBytes, pool, log })
    this.#connections = new AdoptedConnections(this.#app, setup)
    this.#requests = new RequestsUnderWay(this.#app.server)
    const grpc = { ...setup.grpc, maxMessageBytes: modelServer.maxRequestBytes, pool, log }
    this.#grpc = new GrpcListener(this.server, grpc, log)
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

  /** Resolves when all models serve or have a reason why not. */
  async loadModels(): Promise<void> {
    await this.#manager.start()
    this.#watch.start()
    this.#poller?.start()
  }

  state(): Pick<ModelServerBeat, 'models' | 'unreadable' | 'grpcPort' | 'grpcReason' | 'providerFailures'> {
    const wanted = this.#manager.records().filter((record) => record.wanted)
    const ready = wanted.filter((record) => record.ready).length
    const { port, reason } = this.#grpc.state
    const failures = wanted.flatMap(({ name }) => this.#providerFailures.get(name) ?? [])
    return {
      models: { total: wanted.length, ready },
      unreadable: [...this.#manager.unreadable],
      grpcPort: port,
      grpcReason: reason,
      providerFailures: [...new Set(failures)],
    }
  }

  /** Metrics of the models, with what was counted elsewhere. */
  async metrics({ cameras, clients: before }: ModelMetricsQuestion): Promise<ModelMetrics> {
    const clients = this.#recorders()
      .filter((recorder) => cameras.some((each) => isSameModel(each, recorder)))
      .map(counted)
    const ended = before.filter((each) =>
      beganAnew(
        each,
        clients.find((now) => isSameModel(now, each)),
      ),
    )
    this.#forCameras = addUp([...cameras, ...ended])
    return { text: await this.server.metrics(), clients, ended }
  }

  /** From here on it is not ready, and refuses what is new. Resolves when what was begun is answered, or after `withinMs`. */
  async drain(withinMs: number): Promise<void> {
    this.#watch.stop()
    this.#poller?.stop()
    this.server.refuse()
    this.#manager.refuse()
    this.#connections.refuse()
    this.#requests.refuse()
    await Promise.all([this.#requests.answered(withinMs), this.#grpc.drain(withinMs)])
  }

  /** Idempotent, never rejects. What waits in a model is told that it is not answered any more; what runs is cut. */
  async stop(): Promise<void> {
    await this.drain(0)
    this.#ending.abort()
    await atMost(closeAtMostMs, this.#manager.stop(0))
    await atMost(closeAtMostMs, Promise.allSettled([this.#app.close(), this.#grpc.stop(closeAtMostMs)]))
    this.#pool.close()
    await atMost(closeAtMostMs, this.#cache?.close() ?? Promise.resolve())
    await atMost(traceWriteAtMostMs, this.#tracer.close())
  }

  #accounts(): MemoryAccounts {
    const { modelMemoryBytes, probe } = this.setup.modelServer
    const mainThread = ownThread()
    return new MemoryAccounts({
      limitBytes: modelMemoryBytes ?? probe.memoryBytes,
      use: memoryUse,
      ownThreads: () => [mainThread, ...this.#pool.threads],
      clock: timers,
      onActive: (models) => this.#record.active(models),
      onOver: (model, reason) => this.#endOver(model, reason),
    })
  }

  /** A thread cannot be ended inside a native run, so the process is: it is started again without the model. */
  #endOver(model: string, reason: string): void {
    this.#record.over(model, reason)
    this.log.fatal({ model, reason }, 'a model takes too much memory, ending the model server')
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), refusedWithinMs)
  }

  /** Of models that cameras have, what was done for both; the others as they are. */
  #counts(): readonly CountedStatistics[] {
    const others = [...this.#forCameras]
    const own = this.#recorders().map((recorder) => {
      const at = others.findIndex((each) => isSameModel(each, recorder))
      return at < 0 ? recorder : addUp([recorder, ...others.splice(at, 1)])[0]!
    })
    return [...own, ...others]
  }

  #recorders(): readonly StatisticsRecorder[] {
    const serving = this.#manager.records().flatMap((record) => record.serving)
    return serving.map(recorderOf).filter((recorder) => recorder !== undefined)
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
      runtime: ort.env.versions.common,
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
