import type { IndexEntry } from '../model-server.js'
import { ServingError } from '../../tensors/serving-error.js'
import { needsOfConfig } from '../../repository/model-definition.js'
import { ModelRecord } from './model-record.js'
import type { ServedModel } from './served-model.js'

/** Names that come and go take memory of no more than so many that are gone. */
const mostGone = 1_000

/** Every model that was ever asked for or found, and what became of it. */
export class ModelRecords {
  readonly #records = new Map<string, ModelRecord>()

  get(name: string): ModelRecord | undefined {
    return this.#records.get(name)
  }

  /** A new one where there is none. */
  of(name: string): ModelRecord {
    const known = this.#records.get(name)
    if (known !== undefined) {
      known.gone = false
      return known
    }
    const record = new ModelRecord(name)
    this.#records.set(name, record)
    return record
  }

  /** Its folder is gone: the index has it no more, and who asks for it is told that no version of it is there. */
  goes(name: string): void {
    const record = this.#records.get(name)
    if (record === undefined) return
    record.gone = true
    const gone = [...this.#records.values()].filter((each) => each.gone)
    for (const { name: oldest } of gone.slice(0, Math.max(0, gone.length - mostGone)))
      this.#records.delete(oldest)
  }

  /** By name. */
  all(): readonly ModelRecord[] {
    return [...this.#records.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  index(name: string): readonly IndexEntry[] {
    const record = this.#records.get(name)
    return record === undefined || record.gone ? [] : record.index()
  }

  /**
   * The version that answers now.
   *
   * @param version - digits, or empty for the highest that is ready.
   * @throws ServingError
   */
  find(name: string, version: string): ServedModel {
    const record = this.#records.get(name)
    if (record === undefined || !record.known)
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

  /** Models that the ensemble runs, and those that these run; none for other models. */
  needs(name: string): readonly string[] {
    const names = new Set<string>()
    const add = (record: ModelRecord | undefined): void => {
      for (const need of record === undefined ? [] : needsOf(record))
        if (!names.has(need)) {
          names.add(need)
          add(this.#records.get(need))
        }
    }
    add(this.#records.get(name))
    return [...names]
  }

  /** Whether a client has unloaded a model that the ensemble runs: that it does not serve is what was asked for. */
  needsUnloaded(name: string): boolean {
    return this.needs(name).some((need) => {
      const record = this.#records.get(need)
      return record?.wanted === false && !record.gone
    })
  }

  /** Ensembles that run the model, and are to serve. */
  dependents(name: string): readonly ModelRecord[] {
    return this.all().filter((record) => record.wanted && needsOf(record).includes(name))
  }
}

/** Models that the ensemble runs; none for other models. */
export function needsOf(record: ModelRecord): readonly string[] {
  return record.definition === undefined ? [] : needsOfConfig(record.definition.config)
}
