import { isModelName } from '../../inference/model-name.js'
import { emptyModelConfig, type ModelConfig } from '../../inference/model-config.js'
import { backoffMs } from '../../lifecycle/backoff.js'
import { delay, unlessAborted } from '../../lifecycle/delay.js'
import { isSystemLimit } from '../../lifecycle/system-limit.js'
import type { IndexEntry, LoadRequest } from '../model-server.js'
import { type UnreadableRepositories, unreadableText } from '../../inference/repository-folder.js'
import { ServingError } from '../serving-error.js'
import type { KeptLoads } from './kept-loads.js'
import { loadOrder } from './load-order.js'
import {
  backendName,
  needsOf as needsOfConfig,
  onlyForGpus,
  readDefinition,
  stepsOf,
  type ModelDefinition,
} from './model-definition.js'
import { messageOf, ModelLifecycle, type ModelLifecycleOptions } from './model-lifecycle.js'
import type { ModelRecord } from './model-record.js'
import { ModelRecords, needsOf } from './model-records.js'
import { Repositories } from './repositories.js'
import { type RepositoryScan } from './repository-files.js'
import type { ServedModel } from './served-model.js'
import { writeUploadedModel, type UploadedModel } from './uploaded-model.js'

export type ModelManagerOptions = ModelLifecycleOptions &
  Readonly<{
    /** Absolute. */
    repositories: readonly string[]
    /** Models that have `configs/<configName>.pbtxt` are configured by it. */
    configName?: string | undefined
    control: 'none' | 'poll' | 'explicit'
    /** With `explicit`: what to load at the start; `*` is everything. */
    load: readonly string[]
    /** Whether there is a GPU that models may run on: without one, models that ensembles have for GPUs are loaded only by name. */
    onGpu?: boolean
    /** Folder for files that clients send; private to the service. */
    uploadDir: string
    /** What clients asked for, for a process that takes the place of this one; absent: it is not kept. */
    kept?: KeptLoads
    /** Models that are not loaded at the start, with the reason. */
    heldOut?: ReadonlyMap<string, string>
    /** One of them is tried again: a client asked for it, or its files changed. */
    onReleased?: (name: string) => void
  }>

/** Between tries of models that a limit of the system keeps from being loaded. */
const limitBackoff = { baseMs: 1_000, capMs: 30_000 }

/** Which models serve, in which versions: loads, replaces and unloads them, one change after another. */
export class ModelManager {
  readonly #records = new ModelRecords()
  readonly #lifecycle: ModelLifecycle
  readonly #repositories: Repositories
  /** Repositories that could not be read at the start: what they hold is still to be loaded. */
  #late: ReadonlySet<string> = new Set()
  #last: Promise<unknown> = Promise.resolve()
  #started = false
  readonly #closing = new AbortController()
  readonly #heldOut: Map<string, string>

  constructor(readonly options: ModelManagerOptions) {
    this.#heldOut = new Map(options.heldOut)
    this.#lifecycle = new ModelLifecycle(options, this.#records)
    this.#repositories = new Repositories(options.repositories, options.configName, options.log)
  }

  /** Whether every model that is to be loaded is, and every repository can be read. */
  get ready(): boolean {
    return (
      this.#started &&
      this.unreadable.size === 0 &&
      this.#records.all().every((record) => !record.wanted || record.ready || this.#lacksHeldOut(record))
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
    await this.#inOrder(async () => {
      await this.#repositories.look()
      this.#late = new Set(this.unreadable.keys())
      const scan = this.scan()
      for (const [name, reason] of this.#heldOut) this.#holdOut(name, reason, scan)
      const names = this.#namesAtStart(scan)
      for (const name of names) this.#records.of(name).explicit = true
      await this.#bringAll(names, scan)
      await this.#bringKept()
      this.#started = true
    })
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
    if (this.options.control !== 'poll') await this.#inOrder(() => this.#bringLate(first))
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

  /** @throws ServingError */
  find(name: string, version: string): ServedModel {
    return this.#records.find(name, version)
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
      ...this.records().map((record) => record.name),
    ])
    return [...names].sort().flatMap((name) => {
      const entries = this.#records.index(name)
      if (readyOnly) return entries.filter(({ state }) => state === 'READY')
      const reason = scan.ambiguous.get(name) ?? ''
      return entries.length > 0 ? entries : [{ name, version: '', state: '' as const, reason }]
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
      throw new ServingError('INVALID_ARG', `failed to load '${name}', files are given without a 'config'`)
    await this.#inOrder(async () => {
      this.#release(name)
      const upload =
        request.files.size > 0
          ? await writeUploadedModel(this.options.uploadDir, name, request.files)
          : undefined
      await this.#load(name, request.config, upload)
      this.options.kept?.loaded(name, request.config, upload?.folder)
    })
  }

  /** @throws ServingError */
  async unload(name: string, unloadDependents: boolean): Promise<void> {
    this.#checkExplicit()
    await this.#inOrder(async () => {
      this.#unload(name, unloadDependents)
      this.options.kept?.unloaded(name)
    })
  }

  /** Loads the models that changed and unloads those that are gone; failures are logged, and seen in the index. */
  async follow(changed: readonly string[], gone: readonly string[]): Promise<void> {
    await this.#inOrder(async () => {
      for (const name of gone) {
        this.#unload(name, false)
        this.#records.delete(name)
      }
      for (const name of changed) this.#release(name)
      if (changed.length > 0) await this.#bringAll(changed, this.scan())
    })
  }

  /** From here on nothing is loaded or unloaded; a change that has begun goes on. */
  refuse(): void {
    this.#closing.abort(new ServingError('UNAVAILABLE', 'Server is stopping'))
  }

  /** Unloads everything. Idempotent, never rejects. @param drainMs - longest that requests in the models may take to end. */
  async close(drainMs = this.options.drainMs): Promise<void> {
    this.refuse()
    this.#retireAll(drainMs)
    await this.#last
    // What a change that had begun has brought up since.
    this.#retireAll(drainMs)
    await this.#lifecycle.drained()
  }

  #retireAll(drainMs: number): void {
    const ensembleFirst = [...this.records()].sort((a, b) => needsOf(b).length - needsOf(a).length)
    for (const record of ensembleFirst) this.#lifecycle.retire(record, undefined, drainMs)
  }

  #namesAtStart(scan: RepositoryScan): readonly string[] {
    const { control, load, kept } = this.options
    const names =
      control !== 'explicit' || load.includes('*')
        ? [...scan.folders.keys(), ...scan.ambiguous.keys()].sort()
        : load
    return names.filter((name) => !this.#heldOut.has(name) && kept?.has(name) !== true)
  }

  /** What clients had loaded before this process took the place of another. */
  async #bringKept(): Promise<void> {
    for (const { name, config, upload } of this.options.kept?.loads() ?? [])
      if (!this.#heldOut.has(name) && !this.#closing.signal.aborted)
        await this.#load(name, config, upload).catch((error: unknown) =>
          this.options.log.error(
            { model: name, err: error },
            'model that a client had loaded cannot be loaded',
          ),
        )
  }

  /** The index has the reason. It does not make the server less ready: what a client asks of one model must not do that to the others. */
  #holdOut(name: string, reason: string, scan: RepositoryScan): void {
    const record = this.#records.of(name)
    record.wanted = false
    for (const version of this.#versionsOf(name, scan)) record.set(version, 'UNAVAILABLE', reason)
    this.options.log.error({ model: name, reason }, 'model is held out')
  }

  /** An ensemble that runs a model that is held out. */
  #lacksHeldOut(record: ModelRecord): boolean {
    return needsOf(record).some((need) => {
      const inner = this.#records.get(need)
      return this.#heldOut.has(need) || (inner !== undefined && this.#lacksHeldOut(inner))
    })
  }

  #versionsOf(name: string, scan: RepositoryScan): readonly number[] {
    const folder =
      this.options.kept?.loads().find((load) => load.name === name)?.upload?.folder ?? scan.folders.get(name)
    try {
      const versions = folder === undefined ? [] : readDefinition(folder).versions
      return versions.length === 0 ? [1] : versions
    } catch {
      return [1]
    }
  }

  #release(name: string): void {
    if (this.#heldOut.delete(name)) this.options.onReleased?.(name)
  }

  /** What was to be loaded at the start and could not: what the repositories hold, and what waited for it. */
  async #bringLate(repositories: readonly string[]): Promise<void> {
    const scan = this.scan()
    const names = this.#namesAtStart(scan).filter((name) => {
      const record = this.#records.get(name)
      if (record === undefined) return repositories.includes(scan.folders.get(name)?.repository ?? '')
      return record.wanted && record.serving.length === 0
    })
    for (const name of names) this.#records.of(name).explicit = true
    await this.#bringAll(names, scan)
  }

  #checkExplicit(): void {
    if (this.options.control !== 'explicit')
      throw new ServingError(
        'UNAVAILABLE',
        'explicit model load / unload is not allowed if polling is enabled',
      )
  }

  async #load(name: string, config: string | undefined, upload: UploadedModel | undefined): Promise<void> {
    const scan = this.scan()
    const wasWanted = this.#records.get(name)?.wanted ?? false
    try {
      const folder = upload?.folder ?? scan.folders.get(name)
      if (folder === undefined) throw this.#notFound(name, scan)
      const definition = this.#definition(name, () => readDefinition(folder, config))
      if (upload !== undefined && backendName(definition.config) === 'js')
        throw new ServingError('UNSUPPORTED', `failed to load '${name}', code is not taken from clients`)
      await this.#bringWithNeeds(definition, scan, upload)
    } catch (error) {
      // Of several versions some may serve from it.
      if (upload !== undefined && this.#records.get(name)?.upload !== upload) upload.remove()
      // That a client asked for what cannot be loaded does not make the server less ready.
      const record = this.#records.get(name)
      if (record !== undefined) record.wanted = wasWanted
      throw error
    }
    this.#records.of(name).explicit = true
  }

  #definition(name: string, read: () => ModelDefinition): ModelDefinition {
    try {
      return read()
    } catch (error) {
      this.options.log.error({ model: name, err: error }, 'model cannot be read')
      throw new ServingError(
        isSystemLimit(error) ? 'UNAVAILABLE' : 'INTERNAL',
        `failed to load '${name}', failed to poll from model repository: ${messageOf(error)}`,
        'OTHER',
        error,
      )
    }
  }

  /** Loads what an ensemble runs before the ensemble itself. */
  async #bringWithNeeds(
    definition: ModelDefinition,
    scan: RepositoryScan,
    upload: UploadedModel | undefined,
  ): Promise<void> {
    const definitions = new Map([[definition.name, definition]])
    for (const { config } of definitions.values())
      for (const need of this.#needsOf(config)) {
        const folder = scan.folders.get(need)
        // A model with what a client sent serves as it is.
        const sent = this.#records.get(need)?.definition?.overridden === true
        if (folder === undefined || sent || definitions.has(need) || this.#heldOut.has(need)) continue
        definitions.set(
          need,
          this.#definition(need, () => readDefinition(folder)),
        )
      }
    const { order, circular } = loadOrder(needsIn(definitions))
    const circle = circular.get(definition.name)
    if (circle !== undefined)
      throw new ServingError('INVALID_ARG', `circular dependency between ensembles: ${circle}`)
    for (const name of order) {
      const each = definitions.get(name)
      if (each === undefined) continue
      if (name === definition.name) await this.#lifecycle.bring(each, upload)
      else await this.#lifecycle.bring(each, undefined).catch(() => undefined)
    }
  }

  /**
   * Loads models of the repositories; each failure stays with its model. Where one is a limit of the system, those that failed are
   * tried again.
   *
   * @param tries - how often that was done.
   */
  async #bringAll(names: readonly string[], scan: RepositoryScan, tries = 0): Promise<void> {
    const failed = new Map<string, unknown>()
    await this.#bringEach(names, scan, (name, error) => failed.set(name, error))
    if ([...failed.values()].some(isSystemLimit)) void this.#tryAgain([...failed.keys()], tries)
  }

  async #tryAgain(names: readonly string[], tries: number): Promise<void> {
    const waitMs = backoffMs(tries, limitBackoff)
    this.options.log.warn({ models: names, waitMs: Math.round(waitMs) }, 'models are tried again')
    if (!(await delay(waitMs, this.#closing.signal))) return
    const bring = (): Promise<void> => {
      const left = names.filter((name) => {
        const record = this.#records.get(name)
        return record?.wanted === true && record.definition?.overridden !== true
      })
      return this.#bringAll(left, this.scan(), tries + 1)
    }
    await this.#inOrder(bring).catch((error: unknown) => {
      if (!this.#closing.signal.aborted)
        this.options.log.error({ err: error }, 'models cannot be tried again')
    })
  }

  async #bringEach(
    names: readonly string[],
    scan: RepositoryScan,
    onFailure: (name: string, error: unknown) => void,
  ): Promise<void> {
    const definitions = new Map<string, ModelDefinition>()
    // The list grows by what ensembles need.
    const wanted = [...names]
    for (const name of wanted) {
      if (definitions.has(name)) continue
      const folder = scan.folders.get(name)
      try {
        if (folder === undefined) throw this.#notFound(name, scan)
        const definition = readDefinition(folder)
        definitions.set(name, definition)
        wanted.push(
          ...this.#needsOf(definition.config).filter(
            (need) => scan.folders.has(need) && !this.#heldOut.has(need),
          ),
        )
      } catch (error) {
        this.#lifecycle.failed(this.#records.of(name), messageOf(error))
        onFailure(name, error)
      }
    }
    this.#leaveOutForGpus(definitions)
    const { order, circular } = loadOrder(needsIn(definitions))
    for (const [name, circle] of circular)
      this.#lifecycle.failed(this.#records.of(name), `circular dependency between ensembles: ${circle}`)
    for (const name of order) {
      const definition = definitions.get(name)
      if (definition !== undefined && !this.#closing.signal.aborted)
        await this.#lifecycle.bring(definition, undefined).catch((error: unknown) => onFailure(name, error))
    }
  }

  #needsOf(config: ModelConfig): readonly string[] {
    return this.options.onGpu === true ? needsOfConfig(config) : stepsOf(config)
  }

  /** Drops models that only stand in for steps of ensembles on a GPU, where there is none and nobody asked for them by name. */
  #leaveOutForGpus(definitions: Map<string, ModelDefinition>): void {
    if (this.options.onGpu === true) return
    const known = [...definitions.values(), ...this.records().flatMap(({ definition }) => definition ?? [])]
    const named = this.options.control === 'explicit' ? this.options.load : []
    for (const name of onlyForGpus(known, named)) {
      const record = this.#records.get(name)
      // A client has loaded it.
      if ((record?.serving.length ?? 0) > 0) continue
      definitions.delete(name)
      if (record !== undefined) record.wanted = false
    }
  }

  #unload(name: string, unloadDependents: boolean): void {
    const record = this.#records.get(name)
    if (record === undefined) return
    const needs = needsOf(record)
    this.#retireDependents(name)
    this.#lifecycle.retire(record)
    record.wanted = false
    record.explicit = false
    if (!unloadDependents) return
    for (const need of needs) {
      const inner = this.#records.get(need)
      if (inner !== undefined && !inner.explicit && this.#records.dependents(need).length === 0)
        this.#unload(need, true)
    }
  }

  /** Ensembles that run the model, and the ensembles that run these. */
  #retireDependents(name: string): void {
    for (const dependent of this.#records.dependents(name)) {
      if (!this.#needsOf(dependent.definition?.config ?? emptyModelConfig).includes(name)) continue
      this.#retireDependents(dependent.name)
      this.#lifecycle.retire(dependent, lostNeed(dependent.name, name))
    }
  }

  #notFound(name: string, scan: RepositoryScan): ServingError {
    const ambiguous = scan.ambiguous.get(name)
    if (ambiguous !== undefined) return new ServingError('INTERNAL', ambiguous)
    return notPolled(
      name,
      [...this.unreadable].map(([dir, reason]) => unreadableText(dir, reason)).join('; '),
    )
  }

  /** One change after another: each sees the state that the one before left. */
  #inOrder<T>(change: () => Promise<T>): Promise<T> {
    const before = this.#last
    const done = unlessAborted(before, this.#closing.signal).then(change)
    this.#last = Promise.allSettled([before, done])
    return done
  }
}

function needsIn(definitions: ReadonlyMap<string, ModelDefinition>): Map<string, readonly string[]> {
  return new Map([...definitions].map(([name, { config }]) => [name, needsOfConfig(config)]))
}

function notPolled(name: string, reason = ''): ServingError {
  const why = reason === '' ? '' : `: ${reason}`
  return new ServingError('INTERNAL', `failed to load '${name}', failed to poll from model repository${why}`)
}

function lostNeed(ensemble: string, need: string): string {
  return `ensemble '${ensemble}' depends on '${need}' which has no loaded version`
}
