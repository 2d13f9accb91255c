import { GantryError } from '../../errors.js'
import type { Log } from '../../lifecycle/log.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { BackendContext } from '../backend.js'
import type { LoadedModel } from '../loaded-model.js'
import type { IndexEntry, LoadRequest } from '../model-server.js'
import { ServingError } from '../serving-error.js'
import { differsInInstancesOnly, isUnchanged } from './definition-changes.js'
import { loadOrder } from './load-order.js'
import { backendName, readDefinition, stepsOf, type ModelDefinition } from './model-definition.js'
import { ModelRecord, unloadedReason } from './model-record.js'
import {
  isModelName,
  printFolder,
  samePrint,
  scanRepositories,
  type RepositoryScan,
} from './repository-files.js'
import { ServedModel } from './served-model.js'
import { writeUploadedModel, type UploadedModel } from './uploaded-model.js'
import { join } from 'node:path'

export type ModelManagerOptions = Readonly<{
  /** Absolute. */
  repositories: readonly string[]
  /** Models that have `configs/<configName>.pbtxt` are configured by it. */
  configName?: string | undefined
  control: 'none' | 'poll' | 'explicit'
  /** With `explicit`: what to load at the start; `*` is everything. */
  load: readonly string[]
  /** Whether an ensemble may use the name without a folder. */
  isBuiltIn(name: string): boolean
  /**
   * Makes a version ready to serve.
   *
   * @param before - the same model with other instances, which it takes the place of: its statistics go on.
   * @throws GantryError why it cannot
   */
  open(context: BackendContext, before?: LoadedModel): Promise<LoadedModel>
  /** Looks at a version in a process of its own before it is opened. @throws GantryError why it is refused */
  probe(definition: ModelDefinition, version: number): Promise<void>
  /** Folder for files that clients send; private to the service. */
  uploadDir: string
  /** Longest that requests in a version that is replaced or unloaded may take to end. */
  drainMs: number
  log: Log
}>

/** Which models serve, in which versions: loads, replaces and unloads them, one change after another. */
export class ModelManager {
  readonly #records = new Map<string, ModelRecord>()
  readonly #draining = new Set<Promise<void>>()
  #last: Promise<unknown> = Promise.resolve()
  #started = false
  #closed = false

  constructor(readonly options: ModelManagerOptions) {}

  /** Whether every model that is to be loaded is. */
  get ready(): boolean {
    return this.#started && [...this.#records.values()].every((record) => !record.wanted || record.ready)
  }

  /** Loads what the control mode says. Resolves when each of them serves or has a reason why not. */
  async start(): Promise<void> {
    await this.#inOrder(async () => {
      const scan = this.scan()
      const names = this.#namesAtStart(scan)
      for (const name of names) this.#record(name).explicit = true
      await this.#bringAll(names, scan)
      this.#started = true
    })
  }

  scan(): RepositoryScan {
    const { repositories, configName, log } = this.options
    const unreadable = (repository: string, error: unknown) =>
      log.error({ repository, err: error }, 'model repository cannot be read')
    return scanRepositories(repositories, unreadable, configName)
  }

  record(name: string): ModelRecord | undefined {
    return this.#records.get(name)
  }

  records(): readonly ModelRecord[] {
    return [...this.#records.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /**
   * The version that answers now.
   *
   * @param version - digits, or empty for the highest that is ready.
   * @throws ServingError
   */
  find(name: string, version: string): ServedModel {
    const record = this.#records.get(name)
    if (record === undefined || record.versions.length === 0)
      throw new ServingError('INVALID_ARG', `Request for unknown model: '${name}' is not found`)
    return record.find(version)
  }

  /** @throws ServingError for a name that was never known */
  isReady(name: string, version: string): boolean {
    try {
      return this.find(name, version) !== undefined
    } catch (error) {
      if (error instanceof ServingError && error.status !== 'INVALID_ARG') return false
      throw error
    }
  }

  index(readyOnly: boolean): readonly IndexEntry[] {
    const scan = this.scan()
    const names = new Set([...scan.folders.keys(), ...scan.ambiguous.keys(), ...this.#records.keys()])
    return [...names].sort().flatMap((name) => {
      const entries = this.#records.get(name)?.index() ?? []
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
    await this.#inOrder(() => this.#load(name, request))
  }

  /** @throws ServingError */
  async unload(name: string, unloadDependents: boolean): Promise<void> {
    this.#checkExplicit()
    await this.#inOrder(async () => this.#unload(name, unloadDependents))
  }

  /** Loads the models that changed and unloads those that are gone; failures are logged, and seen in the index. */
  async follow(changed: readonly string[], gone: readonly string[]): Promise<void> {
    await this.#inOrder(async () => {
      for (const name of gone) {
        this.#unload(name, false)
        this.#records.delete(name)
      }
      if (changed.length > 0) await this.#bringAll(changed, this.scan())
    })
  }

  /** Unloads everything. Idempotent, never rejects. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#last
    const ensembleFirst = [...this.records()].sort((a, b) => needsOf(b).length - needsOf(a).length)
    for (const record of ensembleFirst) this.#retire(record)
    await Promise.all(this.#draining)
  }

  #namesAtStart(scan: RepositoryScan): readonly string[] {
    const { control, load } = this.options
    if (control !== 'explicit' || load.includes('*'))
      return [...scan.folders.keys(), ...scan.ambiguous.keys()].sort()
    return load
  }

  #checkExplicit(): void {
    if (this.options.control !== 'explicit')
      throw new ServingError(
        'UNAVAILABLE',
        'explicit model load / unload is not allowed if polling is enabled',
      )
  }

  async #load(name: string, { config, files }: LoadRequest): Promise<void> {
    const scan = this.scan()
    const upload = files.size > 0 ? writeUploadedModel(this.options.uploadDir, name, files) : undefined
    const wasWanted = this.#records.get(name)?.wanted ?? false
    try {
      const folder = upload?.folder ?? scan.folders.get(name)
      if (folder === undefined) throw notPolled(name)
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
    this.#record(name).explicit = true
  }

  #definition(name: string, read: () => ModelDefinition): ModelDefinition {
    try {
      return read()
    } catch (error) {
      this.options.log.error({ model: name, err: error }, 'model cannot be read')
      throw new ServingError(
        'INTERNAL',
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
      for (const need of stepsOf(config)) {
        const folder = scan.folders.get(need)
        // A model with what a client sent serves as it is.
        const sent = this.#records.get(need)?.definition?.overridden === true
        if (folder === undefined || sent || definitions.has(need)) continue
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
      if (name === definition.name) await this.#bring(each, upload)
      else await this.#bring(each, undefined).catch(() => undefined)
    }
  }

  /** Loads models of the repositories; each failure stays with its model. */
  async #bringAll(names: readonly string[], scan: RepositoryScan): Promise<void> {
    const definitions = new Map<string, ModelDefinition>()
    // The list grows by what ensembles need.
    const wanted = [...names]
    for (const name of wanted) {
      if (definitions.has(name)) continue
      const folder = scan.folders.get(name)
      try {
        if (folder === undefined) throw notFound(name, scan)
        const definition = readDefinition(folder)
        definitions.set(name, definition)
        wanted.push(...stepsOf(definition.config).filter((need) => scan.folders.has(need)))
      } catch (error) {
        this.#failed(this.#record(name), messageOf(error))
      }
    }
    const { order, circular } = loadOrder(needsIn(definitions))
    for (const [name, circle] of circular)
      this.#failed(this.#record(name), `circular dependency between ensembles: ${circle}`)
    for (const name of order) {
      const definition = definitions.get(name)
      if (definition !== undefined && !this.#closed)
        await this.#bring(definition, undefined).catch(() => undefined)
    }
  }

  #failed(record: ModelRecord, reason: string): void {
    this.options.log.error({ model: record.name, reason }, 'model cannot be loaded')
    if (record.serving.length === 0) record.set(record.versions.at(-1)?.version ?? 1, 'UNAVAILABLE', reason)
    record.wanted = true
  }

  /**
   * Makes a model serve as it is defined: new versions are ready before old ones end.
   *
   * @throws ServingError when a version cannot be loaded; what served before goes on serving
   */
  async #bring(definition: ModelDefinition, upload: UploadedModel | undefined): Promise<void> {
    const record = this.#record(definition.name)
    record.wanted = true
    if (definition.versions.length === 0) {
      this.#failed(record, 'no version is available')
      throw new ServingError('INTERNAL', `failed to load '${definition.name}', no version is available`)
    }
    const kept = definition.versions.filter((version) => isUnchanged(record, definition, version))
    const missing = definition.versions.filter((version) => !kept.includes(version))
    if (missing.length === 0 && record.serving.length === kept.length) return upload?.remove()
    for (const warning of definition.warnings)
      this.options.log.warn({ model: definition.name }, `model configuration: ${warning}`)

    const opened: ServedModel[] = []
    const failures: string[] = []
    const had = record.serving.length > 0
    const sameModel = record.definition !== undefined && differsInInstancesOnly(record.definition, definition)
    for (const version of missing) {
      if (record.model(version) === undefined) record.set(version, 'LOADING')
      try {
        opened.push(await this.#open(definition, version, sameModel ? record.model(version) : undefined))
      } catch (error) {
        const reason = messageOf(error)
        failures.push(`version ${version} is at UNAVAILABLE state: ${reason}`)
        this.options.log.error({ model: definition.name, version, err: error }, 'model cannot be loaded')
        if (record.model(version) === undefined) {
          if (had) record.forget(version)
          else record.set(version, 'UNAVAILABLE', reason)
        } else record.set(version, 'READY', `reload failed: ${reason}`, record.model(version))
      }
    }
    if (failures.length > 0 && had) for (const model of opened) this.#discard(record, model)
    else this.#replace(record, definition, opened, kept, upload)
    if (failures.length > 0)
      throw new ServingError(
        'INVALID_ARG',
        `load failed for model '${definition.name}': ${failures.join('; ')}`,
      )
    await this.#reopenDependents(definition.name)
  }

  /** A version that could serve, but for another of its model that cannot. */
  #discard(record: ModelRecord, model: ServedModel): void {
    const version = Number(model.version)
    if (record.model(version) === undefined) record.forget(version)
    void this.#drain(model)
  }

  async #open(
    definition: ModelDefinition,
    version: number,
    before: ServedModel | undefined,
  ): Promise<ServedModel> {
    const { name, config, folder, print } = definition
    const { log } = this.options
    const beganMs = nowMs()
    this.#checkNeeds(definition)
    await this.options.probe(definition, version)
    const versionDir = join(folder.dir, String(version))
    const context = { name, version: String(version), config, versionDir, log }
    const model = new ServedModel(await this.options.open(context, before?.inner))
    if (!samePrint(print, printFolder(folder))) {
      void this.#drain(model)
      throw new ServingError('UNAVAILABLE', 'its files changed while it was loaded')
    }
    log.info(
      { model: name, version, loadMs: Math.round(nowMs() - beganMs), platform: model.platform },
      'model loaded',
    )
    return model
  }

  /** @throws ServingError when a model that an ensemble runs does not serve. */
  #checkNeeds({ name, config }: ModelDefinition): void {
    for (const need of stepsOf(config)) {
      const record = this.#records.get(need)
      if ((record?.serving.length ?? 0) > 0) continue
      if (record === undefined && this.options.isBuiltIn(need)) continue
      const why = record?.versions.at(-1)?.reason ?? ''
      throw new ServingError(
        'INVALID_ARG',
        record === undefined
          ? `ensemble ${name} contains models that are not available or ambiguous: ${need}`
          : `ensemble '${name}' depends on '${need}' which has no loaded version${why === '' ? '' : `. Model '${need}' loading failed with error: ${why}`}`,
      )
    }
  }

  /** From here on the new versions answer. The old ones end when the requests in them have. */
  #replace(
    record: ModelRecord,
    definition: ModelDefinition,
    opened: readonly ServedModel[],
    kept: readonly number[],
    upload: UploadedModel | undefined,
  ): void {
    const old = record.serving.filter((model) => !kept.includes(Number(model.version)))
    for (const model of opened) this.#serves(record, model)
    for (const version of kept) record.set(version, 'READY', '', record.model(version))
    const removed = old.filter((model) => record.model(Number(model.version)) === model)
    for (const model of removed) record.set(Number(model.version), 'UNAVAILABLE', unloadedReason)
    const { upload: oldUpload } = record
    record.definition = definition
    record.upload = upload
    const ended = Promise.all(old.map((model) => this.#drain(model)))
    if (oldUpload !== upload) void ended.then(() => oldUpload?.remove())
  }

  /** A model that breaks leaves the reason, and is not started again before somebody loads it. */
  #serves(record: ModelRecord, model: ServedModel): void {
    const version = Number(model.version)
    record.set(version, 'READY', '', model)
    void model.broken?.then((reason) => {
      if (record.model(version) !== model) return
      record.set(version, 'UNAVAILABLE', reason)
      void this.#drain(model)
    })
  }

  /** Ensembles see a model that was loaded anew with its own tensors, and so do the ensembles of these. */
  async #reopenDependents(name: string): Promise<void> {
    for (const record of this.#dependents(name)) {
      const { definition, upload } = record
      if (definition === undefined) continue
      for (const version of definition.versions) {
        try {
          const before = record.model(version)
          const model = await this.#open(definition, version, before)
          if (before !== undefined) void this.#drain(before)
          this.#serves(record, model)
        } catch (error) {
          this.options.log.error(
            { model: record.name, version, err: error },
            'ensemble no longer fits its models',
          )
          const model = record.model(version)
          if (model !== undefined) void this.#drain(model)
          record.set(version, 'UNAVAILABLE', messageOf(error))
        }
      }
      record.upload = upload
      await this.#reopenDependents(record.name)
    }
  }

  /** Ensembles that run the model, and are to serve. */
  #dependents(name: string): readonly ModelRecord[] {
    return this.records().filter((record) => record.wanted && needsOf(record).includes(name))
  }

  #unload(name: string, unloadDependents: boolean): void {
    const record = this.#records.get(name)
    if (record === undefined) return
    const needs = needsOf(record)
    this.#retireDependents(name)
    this.#retire(record)
    record.wanted = false
    record.explicit = false
    if (!unloadDependents) return
    for (const need of needs) {
      const inner = this.#records.get(need)
      if (inner !== undefined && !inner.explicit && this.#dependents(need).length === 0)
        this.#unload(need, true)
    }
  }

  /** Ensembles that run the model, and the ensembles that run these. */
  #retireDependents(name: string): void {
    for (const dependent of this.#dependents(name)) {
      this.#retireDependents(dependent.name)
      this.#retire(dependent, lostNeed(dependent.name, name))
    }
  }

  /** Takes all versions of a model out of service; requests in them end. */
  #retire(record: ModelRecord, reason = unloadedReason): void {
    const ended = record.serving.map(async (model) => {
      const version = Number(model.version)
      record.set(version, 'UNLOADING')
      await this.#drain(model)
      if (record.versions.find((each) => each.version === version)?.state === 'UNLOADING')
        record.set(version, 'UNAVAILABLE', reason)
    })
    const { upload } = record
    if (reason === unloadedReason) {
      record.definition = undefined
      record.upload = undefined
      void Promise.all(ended).then(() => upload?.remove())
    }
  }

  #drain(model: ServedModel): Promise<void> {
    const ended = model.close(this.options.drainMs)
    this.#draining.add(ended)
    void ended.then(() => this.#draining.delete(ended))
    return ended
  }

  #record(name: string): ModelRecord {
    const known = this.#records.get(name)
    if (known !== undefined) return known
    const record = new ModelRecord(name)
    this.#records.set(name, record)
    return record
  }

  /** One change after another: each sees the state that the one before left. */
  #inOrder<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#last.then(() => {
      if (this.#closed) throw new ServingError('UNAVAILABLE', 'Server is stopping')
      return change()
    })
    this.#last = done.catch(() => undefined)
    return done
  }
}

function needsOf(record: ModelRecord): readonly string[] {
  return record.definition === undefined ? [] : stepsOf(record.definition.config)
}

function needsIn(definitions: ReadonlyMap<string, ModelDefinition>): Map<string, readonly string[]> {
  return new Map([...definitions].map(([name, { config }]) => [name, stepsOf(config)]))
}

function notPolled(name: string): ServingError {
  return new ServingError('INTERNAL', `failed to load '${name}', failed to poll from model repository`)
}

function notFound(name: string, scan: RepositoryScan): ServingError {
  const ambiguous = scan.ambiguous.get(name)
  return ambiguous === undefined ? notPolled(name) : new ServingError('INTERNAL', ambiguous)
}

function lostNeed(ensemble: string, need: string): string {
  return `ensemble '${ensemble}' depends on '${need}' which has no loaded version`
}

function messageOf(error: unknown): string {
  if (error instanceof GantryError || error instanceof Error) return error.message
  return String(error)
}
