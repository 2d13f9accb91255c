import { availableParallelism } from 'node:os'
import type { IndexEntry, LoadRequest } from '../model-server.js'
import type { UnreadableRepositories } from '../../repository/repository-folder.js'
import { ServingError } from '../../tensors/serving-error.js'
import { AskedModels } from './asked-models.js'
import { ChangeOrder, type Claims, everything } from './change-order.js'
import { HeldOut, type HeldOutOptions } from './held-out.js'
import { LoadPlanner, type LoadPlannerOptions, notPolled } from './load-planner.js'
import { ModelLifecycle, type ModelLifecycleOptions } from './model-lifecycle.js'
import { ModelLoads } from './model-loads.js'
import type { ModelRecord } from './model-record.js'
import { ModelRecords } from './model-records.js'
import { ModelUnloads } from './model-unloads.js'
import { WatchedRepositories } from './repositories.js'
import { type ModelDefinition, versionsToServe } from '../../repository/model-definition.js'
import { isModelName, type RepositoryScan } from '../../repository/repository-files.js'
import type { ServedModel } from './served-model.js'
import { writeUploadedModel, type UploadedModel } from './uploaded-model.js'

export type ModelManagerOptions = ModelLifecycleOptions &
  LoadPlannerOptions &
  HeldOutOptions &
  Readonly<{
    /** Absolute. */
    repositories: readonly string[]
    /** Models that have `configs/<configName>.pbtxt` are configured by it. */
    configName?: string | undefined
    /** Folder for files that clients send; private to the service. */
    uploadDir: string
    /** So many models are loaded side by side; default: one for each core, two at least, as some wait and do not compute. */
    loadsAtATime?: number
    /** `false`: it is ready once the start is over, whatever became of the models; default `true`. */
    strictReadiness?: boolean
    /** Before a client's load: brings the repositories up to date. Never rejects. */
    beforeLoad?: () => Promise<void>
    nowMs?: () => number
  }>

/** What the index says of a model that is loaded when it is first asked for. */
const notAskedFor = 'not asked for yet'

/** Which models serve, in which versions: loads, replaces and unloads them, one change of a model after another. */
export class ModelManager {
  readonly #records = new ModelRecords()
  readonly #lifecycle: ModelLifecycle
  readonly #planner: LoadPlanner
  readonly #loads: ModelLoads
  readonly #unloads: ModelUnloads
  readonly #repositories: WatchedRepositories
  /** Where models are loaded when they are first asked for. */
  readonly #asked: AskedModels | undefined
  /** Repositories that could not be read at the start: what they hold is still to be loaded. */
  #late: ReadonlySet<string> = new Set()
  #started = false
  readonly #closing = new AbortController()
  readonly #changes = new ChangeOrder(this.#closing.signal)
  readonly #heldOut: HeldOut

  constructor(readonly options: ModelManagerOptions) {
    this.#heldOut = new HeldOut(options, this.#records)
    this.#lifecycle = new ModelLifecycle(options, this.#records)
    this.#repositories = new WatchedRepositories(options.repositories, options.configName, options.log)
    this.#planner = new LoadPlanner(options, this.#records, this.#heldOut, () => this.unreadable)
    this.#loads = new ModelLoads({
      planner: this.#planner,
      lifecycle: this.#lifecycle,
      records: this.#records,
      scan: () => this.scan(),
      alone: (change) => this.#changes.take(() => everything, change),
      closing: this.#closing.signal,
      atATime: options.loadsAtATime ?? defaultLoadsAtATime(),
      log: options.log,
    })
    this.#unloads = new ModelUnloads(this.#planner, this.#lifecycle, this.#records)
    this.#asked = options.control === 'asked' ? this.#whenAsked() : undefined
  }

  /** Whether every model that is to be loaded is, and every repository can be read; without strict readiness, whether it has tried. */
  get ready(): boolean {
    if (this.options.strictReadiness === false) return this.#started
    return (
      this.#started &&
      this.#asked?.allAsked !== false &&
      this.unreadable.size === 0 &&
      this.#records
        .all()
        .every(
          (record) =>
            !record.wanted ||
            record.ready ||
            this.#heldOut.isNeededBy(record) ||
            this.#records.needsUnloaded(record.name),
        )
    )
  }

  isHeldOut(name: string): boolean {
    return this.#heldOut.has(name)
  }

  /** Repositories that cannot be read now; models of them serve on. */
  get unreadable(): UnreadableRepositories {
    return this.#repositories.unreadable
  }

  /** Loads what the control mode says. Resolves when each of them serves or has a reason why not. */
  async start(): Promise<void> {
    await this.#changes.take(
      () => everything,
      async () => {
        await this.#repositories.look()
        this.#late = new Set(this.unreadable.keys())
        const scan = this.scan()
        this.#heldOut.tell(scan)
        const names = this.#planner.namesAtStart(scan)
        const kept = (this.options.kept?.loads() ?? []).filter(({ name }) => !this.#heldOut.has(name))
        for (const name of names) this.#records.of(name).explicit = true
        await this.#loads.bringAll(names, scan, kept)
        for (const { name } of kept)
          if (this.#records.get(name)?.wanted === true) this.#records.of(name).explicit = true
        this.#started = true
      },
    )
  }

  /**
   * Looks whether the repositories can be read. Models of one that could not at the start are loaded once it can; with `poll`, by
   * the poller.
   */
  async lookAtRepositories(): Promise<void> {
    const back = await this.#repositories.look()
    const first = back.filter((repository) => this.#late.has(repository))
    if (first.length === 0) return
    this.#late = new Set([...this.#late].filter((repository) => !first.includes(repository)))
    if (this.options.control !== 'poll')
      await this.#changes.take(
        () => everything,
        () => this.#bringLate(first),
      )
  }

  /** What is to serve and does not, each with a reason; and repositories that cannot be read. */
  failures(): readonly Readonly<{ name: string; reason: string }>[] {
    const models = this.#records.all().filter(({ wanted, ready }) => wanted && !ready)
    return [
      ...[...this.unreadable].map(([name, reason]) => ({ name, reason })),
      ...models.map(({ name, versions }) => ({
        name,
        reason: versions.find((version) => version.model === undefined)?.reason ?? '',
      })),
    ]
  }

  scan(): RepositoryScan {
    return this.#repositories.scan()
  }

  record(name: string): ModelRecord | undefined {
    return this.#records.get(name)
  }

  records(): readonly ModelRecord[] {
    return this.#records.all()
  }

  /**
   * Somebody wants a model, or wants to know whether all serve, with an empty name. Loads what nobody has wanted before, and tries again
   * what could not be loaded, after a while. Every request asks.
   *
   * @returns undefined where there is nothing to wait for; else what resolves when they serve or have a reason why not, and rejects where
   * the server stops before.
   */
  ask(name: string): Promise<void> | undefined {
    if (this.#asked === undefined || (name === '' && this.options.strictReadiness === false)) return undefined
    // Such steps are known by the ensembles that have them.
    const isOfEnsembles = this.options.isBuiltIn(name) && !this.#asked.knows(name)
    return name === '' || isOfEnsembles ? this.#asked.askAll() : this.#asked.ask(name)
  }

  /** @throws ServingError; where models are loaded as they are asked for, with the reason why this one is not */
  find(name: string, version: string): ServedModel {
    try {
      return this.#records.find(name, version)
    } catch (error) {
      const reason = this.reasonOf(name, version)
      if (reason === '' || !(error instanceof ServingError)) throw error
      throw new ServingError(error.status, `${error.message}: ${reason}`)
    }
  }

  /** Why a model does not serve, where models are loaded as they are asked for; empty where it is not known. */
  reasonOf(name: string, version: string): string {
    if (this.#asked === undefined) return ''
    const versions = this.#records.get(name)?.versions ?? []
    const asked = versions.find((each) => version === '' || each.version === Number(version))
    return asked?.reason ?? ''
  }

  /** @throws ServingError for a name that was never known */
  isReady(name: string, version: string): boolean {
    return this.#records.isReady(name, version)
  }

  index(readyOnly: boolean): readonly IndexEntry[] {
    const scan = this.scan()
    const names = new Set([
      ...scan.folders.keys(),
      ...scan.ambiguous.keys(),
      ...this.records()
        .filter(({ gone }) => !gone)
        .map((record) => record.name),
    ])
    return [...names].sort().flatMap((name) => {
      const entries = this.#records.index(name)
      if (readyOnly) return entries.filter(({ state }) => state === 'READY')
      if (entries.length > 0) return entries.map((entry) => ambiguously(entry, scan.ambiguous.get(name)))
      const folder = scan.folders.get(name)
      if (folder !== undefined && this.#asked?.has(name) === false)
        return versionsToServe(folder).map((version) => ({
          name,
          version: String(version),
          state: 'UNAVAILABLE' as const,
          reason: notAskedFor,
        }))
      return [{ name, version: '', state: '' as const, reason: scan.ambiguous.get(name) ?? '' }]
    })
  }

  /**
   * Loads a model, or what changed of it, with the models it runs.
   *
   * @throws ServingError; what served before goes on serving
   */
  async load(name: string, request: LoadRequest): Promise<void> {
    this.#checkExplicit()
    if (!isModelName(name)) throw notPolled(name)
    if (request.files.size > 0 && request.config === undefined)
      throw new ServingError(
        'INVALID_ARG',
        `failed to load '${name}', failed to poll from model repository: files are given without a 'config'`,
      )
    // Without, its place among the changes is that of the call.
    if (this.options.beforeLoad !== undefined) await this.options.beforeLoad()
    await this.#changes.take(
      () => this.#claimsOfLoad(name, request.config),
      async () => {
        this.#heldOut.release(name)
        const upload =
          request.files.size > 0
            ? await writeUploadedModel(this.options.uploadDir, name, request.files)
            : undefined
        const { overridden } = await this.#load(name, request.config, upload)
        // One that goes on with what was sent before is kept with that.
        if (request.config !== undefined || !overridden)
          this.options.kept?.loaded(name, request.config, upload?.folder)
      },
    )
  }

  /** @throws ServingError */
  async unload(name: string, unloadDependents: boolean): Promise<void> {
    this.#checkExplicit()
    const claims = () => ({
      changes: unloadDependents ? [name, ...this.#records.needs(name)] : [name],
      needs: [],
    })
    await this.#changes.take(claims, () => {
      this.#unloads.unload(name, unloadDependents)
      this.options.kept?.unloaded(name)
      return Promise.resolve()
    })
  }

  /** Loads the models that changed and unloads those that are gone; failures are logged, and seen in the index. */
  async follow(changed: readonly string[], gone: readonly string[]): Promise<void> {
    await this.#changes.take(
      () => everything,
      async () => {
        for (const name of gone) {
          this.#unloads.unload(name, false)
          this.#records.goes(name)
        }
        for (const name of changed) this.#heldOut.release(name)
        if (changed.length > 0) await this.#loads.bringAll(changed, this.scan())
      },
    )
  }

  /**
   * Opens anew what serves of a model, as there is another place for it to run. What serves goes on until then, and where it cannot be
   * opened. Rejects where the server stops before.
   */
  async renew(name: string): Promise<void> {
    await this.#changes.take(
      () => ({ changes: [name], needs: [] }),
      async () => {
        const record = this.#records.get(name)
        if (record !== undefined) await this.#lifecycle.renew(record)
      },
    )
  }

  /** From here on nothing is loaded or unloaded; a change that has begun goes on. */
  refuse(): void {
    this.#closing.abort(new ServingError('UNAVAILABLE', 'Server is stopping'))
  }

  /** Unloads everything. Idempotent, never rejects. @param drainMs - longest that requests in the models may take to end. */
  async stop(drainMs = this.options.drainMs): Promise<void> {
    this.refuse()
    this.#unloads.retireAll(drainMs)
    await this.#changes.idle()
    // What a change that had begun has brought up since.
    this.#unloads.retireAll(drainMs)
    await this.#lifecycle.drained()
  }

  /** What was to be loaded at the start and could not: what the repositories hold, and what waited for it. */
  async #bringLate(repositories: readonly string[]): Promise<void> {
    const scan = this.scan()
    const names = this.#planner.namesAtStart(scan).filter((name) => {
      const record = this.#records.get(name)
      if (record === undefined) return repositories.includes(scan.folders.get(name)?.repository ?? '')
      return record.wanted && record.serving.length === 0
    })
    for (const name of names) this.#records.of(name).explicit = true
    await this.#loads.bringAll(names, scan)
  }

  #whenAsked(): AskedModels {
    const { nowMs } = this.options
    return new AskedModels({
      names: () => {
        const { folders, ambiguous } = this.scan()
        return [...folders.keys(), ...ambiguous.keys()].filter((name) => !this.#heldOut.has(name))
      },
      allOf: (names) => this.#planner.unnamedOf(names, this.scan()),
      isServed: (name) => (this.#records.get(name)?.serving.length ?? 0) > 0,
      load: (name) => this.#changes.beside(this.#loads.bringNamed(name, this.scan())),
      closing: this.#closing.signal,
      ...(nowMs && { nowMs }),
    })
  }

  #checkExplicit(): void {
    if (this.options.control !== 'explicit')
      throw new ServingError(
        'UNAVAILABLE',
        'explicit model load / unload is not allowed if polling is enabled',
      )
  }

  async #load(
    name: string,
    config: string | undefined,
    upload: UploadedModel | undefined,
  ): Promise<ModelDefinition> {
    const scan = this.scan()
    const wasWanted = this.#records.get(name)?.wanted ?? false
    try {
      const definition = this.#planner.asked({ name, config, upload }, scan)
      await this.#loads.bringWithNeeds(definition, scan, upload)
      this.#records.of(name).explicit = true
      return definition
    } catch (error) {
      // Of several versions some may serve from it.
      if (upload !== undefined && this.#records.get(name)?.upload !== upload) upload.remove()
      // That a client asked for what cannot be loaded does not make the server less ready.
      const record = this.#records.get(name)
      if (record !== undefined) record.wanted = wasWanted
      throw error
    }
  }

  #claimsOfLoad(name: string, config: string | undefined): Claims {
    return { changes: [name], needs: this.#planner.namesOfNeeds(name, config, this.scan()) }
  }
}

/** What serves from one folder goes on, also where another has its name by now. */
function ambiguously(entry: IndexEntry, reason: string | undefined): IndexEntry {
  const tells = reason !== undefined && entry.state === 'READY' && entry.reason === ''
  return tells ? { ...entry, reason: `${reason}; what served before serves on` } : entry
}

function defaultLoadsAtATime(): number {
  return Math.max(2, availableParallelism())
}
