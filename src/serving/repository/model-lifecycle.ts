import { dirname, join, sep } from 'node:path'
import { nowMs } from '../../lifecycle/clock.js'
import type { Log } from '../../lifecycle/log.js'
import { isPassing } from '../../lifecycle/system-limit.js'
import type { BackendContext } from '../../runtime/backend.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import { ServingError } from '../../tensors/serving-error.js'
import { differsInInstancesOnly, isUnchanged } from './definition-changes.js'
import { stepsOf, type ModelDefinition } from '../../repository/model-definition.js'
import { type ModelRecord, unloadedReason } from './model-record.js'
import type { ModelRecords } from './model-records.js'
import { type ModelFolder, printModel, samePrint } from '../../repository/repository-files.js'
import { ServedModel } from './served-model.js'
import type { UploadedModel } from './uploaded-model.js'

export type ModelLifecycleOptions = Readonly<{
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
  /** Longest that requests in a version that is replaced or unloaded may take to end. */
  drainMs: number
  log: Log
}>

/**
 * Brings versions of models up and takes them down, so that requests see either the old or the new. Several models may be brought up
 * side by side; what is done to one of them is done in turn.
 */
export class ModelLifecycle {
  readonly #draining = new Set<Promise<void>>()
  /** What is being done to models, by name. */
  readonly #last = new Map<string, Promise<void>>()

  constructor(
    readonly options: ModelLifecycleOptions,
    readonly records: ModelRecords,
  ) {}

  /** Resolves when all requests in versions that were taken down have ended. */
  async drained(): Promise<void> {
    await Promise.all(this.#draining)
  }

  /** A model that cannot be loaded: what serves goes on, and the record has the reason. */
  failed(record: ModelRecord, reason: string): void {
    this.options.log.error({ model: record.name, reason }, 'model cannot be loaded')
    if (record.serving.length === 0) record.set(record.versions.at(-1)?.version ?? 1, 'UNAVAILABLE', reason)
    record.wanted = true
  }

  /**
   * Makes a model serve as it is defined: new versions are ready before old ones end.
   *
   * @throws ServingError when a version cannot be loaded; what served before goes on serving
   */
  async bring(definition: ModelDefinition, upload: UploadedModel | undefined): Promise<void> {
    const isChanged = await this.#inTurn(definition.name, () => this.#bring(definition, upload))
    if (isChanged) await this.#reopenDependents(definition.name)
  }

  /** Opens anew what serves of a model, in the place of what does; that goes on where it fails. */
  async renew(record: ModelRecord): Promise<void> {
    await this.#inTurn(record.name, () => this.#renew(record))
    await this.#reopenDependents(record.name)
  }

  async #renew(record: ModelRecord): Promise<void> {
    const { definition, name } = record
    if (definition === undefined) return
    for (const before of record.serving) {
      const version = Number(before.version)
      try {
        const model = await this.#open(definition, version, before)
        if (record.definition !== definition) {
          void this.#drain(model)
          return
        }
        this.#serves(record, model)
        void this.#drain(before)
      } catch (error) {
        this.options.log.warn(
          { model: name, version, err: error },
          'model cannot be opened anew, it serves on',
        )
      }
    }
  }

  /** @returns whether it serves anew. @throws ServingError */
  async #bring(definition: ModelDefinition, upload: UploadedModel | undefined): Promise<boolean> {
    const record = this.records.of(definition.name)
    record.wanted = true
    if (definition.versions.length === 0) {
      this.failed(record, 'no version is available')
      throw new ServingError('INTERNAL', `failed to load '${definition.name}', no version is available`)
    }
    const kept = definition.versions.filter((version) => isUnchanged(record, definition, version))
    const missing = definition.versions.filter((version) => !kept.includes(version))
    if (missing.length === 0 && record.serving.length === kept.length) {
      upload?.remove()
      return false
    }
    for (const warning of definition.warnings)
      this.options.log.warn({ model: definition.name }, `model configuration: ${warning}`)

    const opened: ServedModel[] = []
    const failures: string[] = []
    let passing: unknown
    const had = record.serving.length > 0
    const sameModel = record.definition !== undefined && differsInInstancesOnly(record.definition, definition)
    for (const version of missing) {
      if (record.model(version) === undefined) record.set(version, 'LOADING')
      try {
        opened.push(await this.#open(definition, version, sameModel ? record.model(version) : undefined))
      } catch (error) {
        const reason = messageOf(error, definition.folder)
        if (isPassing(error)) passing = error
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
        passing === undefined ? 'INVALID_ARG' : 'UNAVAILABLE',
        `load failed for model '${definition.name}': ${failures.join('; ')}`,
        'OTHER',
        passing,
      )
    return true
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
    const { name, config, folder, filesDir, print } = definition
    const { log } = this.options
    const beganMs = nowMs()
    this.#checkNeeds(definition)
    await this.options.probe(definition, version)
    const versionDir = join(filesDir, String(version))
    const context = { name, version: String(version), config, versionDir, log }
    const model = new ServedModel(await this.options.open(context, before?.inner))
    try {
      if (!samePrint(print, printModel(folder, filesDir)))
        throw new ServingError('UNAVAILABLE', 'its files changed while it was loaded')
      // Of several that it needs, another may have been unloaded meanwhile.
      this.#checkNeeds(definition)
    } catch (error) {
      void this.#drain(model)
      throw error
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
      const record = this.records.get(need)
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
    for (const record of this.records.dependents(name)) {
      await this.#inTurn(record.name, () => this.#reopen(record))
      await this.#reopenDependents(record.name)
    }
  }

  async #reopen(record: ModelRecord): Promise<void> {
    const { definition } = record
    if (definition === undefined) return
    for (const version of definition.versions) {
      try {
        const before = record.model(version)
        const model = await this.#open(definition, version, before)
        // It was unloaded meanwhile.
        if (record.definition !== definition) {
          void this.#drain(model)
          return
        }
        if (before !== undefined) void this.#drain(before)
        this.#serves(record, model)
      } catch (error) {
        if (record.definition !== definition) return
        this.options.log.error(
          { model: record.name, version, err: error },
          'ensemble no longer fits its models',
        )
        const model = record.model(version)
        if (model !== undefined) void this.#drain(model)
        record.set(version, 'UNAVAILABLE', messageOf(error, definition.folder))
      }
    }
  }

  /** After what is being done to the model. */
  async #inTurn<T>(name: string, change: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name)
    const changing = before === undefined ? change() : before.then(change)
    const over = changing.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(name, over)
    try {
      return await changing
    } finally {
      if (this.#last.get(name) === over) this.#last.delete(name)
    }
  }

  /** Takes all versions of a model out of service; requests in them end. */
  retire(record: ModelRecord, reason = unloadedReason, drainMs = this.options.drainMs): void {
    const ended = record.serving.map(async (model) => {
      const version = Number(model.version)
      record.set(version, 'UNLOADING')
      await this.#drain(model, drainMs)
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

  #drain(model: ServedModel, drainMs = this.options.drainMs): Promise<void> {
    const ended = model.stop(drainMs)
    this.#draining.add(ended)
    void ended.then(() => this.#draining.delete(ended))
    return ended
  }
}

/**
 * Why something failed, as clients are told, by the index too. The log has it whole.
 *
 * @param folder - of the model: paths in it begin with its name, since where a repository lies is nobody's business.
 */
export function messageOf(error: unknown, folder?: ModelFolder): string {
  const text = error instanceof Error ? error.message : String(error)
  return folder === undefined ? text : text.replaceAll(`${dirname(folder.dir)}${sep}`, '')
}
