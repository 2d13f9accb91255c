import { missingText } from '../../repository/version-policy.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { IndexEntry, ModelState } from '../model-server.js'
import type { ModelDefinition } from '../../repository/model-definition.js'
import type { ServedModel } from './served-model.js'
import type { UploadedModel } from './uploaded-model.js'

/** One version of a model that is or was to be served. */
export type VersionRecord = Readonly<{
  version: number
  state: ModelState
  reason: string
  /** While READY. */
  model: ServedModel | undefined
}>

/** A model that was asked for, by the configuration or by a client, with the fate of each of its versions. */
export class ModelRecord {
  /** What it serves; of a load that failed nothing is kept. */
  definition: ModelDefinition | undefined
  /** Files a client sent for what it serves. */
  upload: UploadedModel | undefined
  /** Asked for by name, not only because an ensemble needs it. */
  explicit = false
  /** It is meant to serve: `false` once unloaded. */
  wanted = true
  /** Its folder is gone; that there was such a model is still told. */
  gone = false
  readonly #versions = new Map<number, VersionRecord>()
  #serving: readonly ServedModel[] = []

  constructor(readonly name: string) {}

  /** Lowest first. */
  get versions(): readonly VersionRecord[] {
    return [...this.#versions.values()].sort((a, b) => a.version - b.version)
  }

  /** It has or had a version. */
  get known(): boolean {
    return this.#versions.size > 0
  }

  /** Lowest version first. Every request looks here. */
  get serving(): readonly ServedModel[] {
    return this.#serving
  }

  /** Every version that is to serve does. */
  get ready(): boolean {
    return (
      this.serving.length > 0 &&
      this.versions.every(({ model, reason }) => model ?? reason === unloadedReason)
    )
  }

  model(version: number): ServedModel | undefined {
    return this.#versions.get(version)?.model
  }

  set(version: number, state: ModelState, reason = '', model?: ServedModel): void {
    this.#versions.set(version, { version, state, reason, model })
    this.#changed()
  }

  forget(version: number): void {
    this.#versions.delete(version)
    this.#changed()
  }

  /**
   * The version that answers.
   *
   * @param version - digits, or empty for the highest that is ready.
   * @throws ServingError
   */
  find(version: string): ServedModel {
    const unknown = `Request for unknown model: '${this.name}'`
    if (version === '') {
      const highest = this.serving.at(-1)
      if (highest !== undefined) return highest
      throw new ServingError('NOT_FOUND', `${unknown} has no available versions`)
    }
    const record = this.#versions.get(Number(version))
    if (record === undefined) {
      const which = this.#versions.size === 0 ? '' : ` version ${version}`
      throw new ServingError('NOT_FOUND', `${unknown}${which} is not found`)
    }
    if (record.model !== undefined) return record.model
    throw new ServingError('UNAVAILABLE', `${unknown} version ${version} is not at ready state`)
  }

  /** With versions that are named and not there, which do not make the model less ready. */
  index(): readonly IndexEntry[] {
    const { name, definition } = this
    const absent = (definition?.absentVersions ?? [])
      .filter((version) => !this.#versions.has(version))
      .map((version) => ({ version, state: 'UNAVAILABLE' as const, reason: missingText(name, version) }))
    return [...this.versions, ...absent]
      .sort((a, b) => a.version - b.version)
      .map(({ version, state, reason }) => ({ name, version: String(version), state, reason }))
  }

  #changed(): void {
    this.#serving = this.versions.flatMap(({ model }) => (model === undefined ? [] : [model]))
  }
}

export const unloadedReason = 'unloaded'
