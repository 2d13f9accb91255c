import type { Log } from '../../lifecycle/log.js'
import type { KeptLoads } from './kept-loads.js'
import { versionsToServe } from '../../repository/model-definition.js'
import type { ModelRecord } from './model-record.js'
import { type ModelRecords, needsOf } from './model-records.js'
import type { RepositoryScan } from '../../repository/repository-files.js'

export type HeldOutOptions = Readonly<{
  /** Models that are not loaded at the start, with the reason. */
  heldOut?: ReadonlyMap<string, string>
  /** One of them is tried again: a client asked for it, or its files changed. */
  onReleased?: (name: string) => void
  /** What clients asked for, for a process that takes the place of this one; absent: it is not kept. */
  kept?: KeptLoads
  log: Log
}>

/** Models that are not loaded by themselves, since they ended the process before this one. */
export class HeldOut {
  readonly #reasons: Map<string, string>

  constructor(
    readonly options: HeldOutOptions,
    readonly records: ModelRecords,
  ) {
    this.#reasons = new Map(options.heldOut)
  }

  has(name: string): boolean {
    return this.#reasons.has(name)
  }

  /** The index has the reasons. They do not make the server less ready: what a client asks of one model must not do that to the others. */
  tell(scan: RepositoryScan): void {
    for (const [name, reason] of this.#reasons) {
      const record = this.records.of(name)
      record.wanted = false
      for (const version of this.#versionsOf(name, scan)) record.set(version, 'UNAVAILABLE', reason)
      this.options.log.error({ model: name, reason }, 'model is held out')
    }
  }

  /** Whether it is an ensemble that runs one of them. */
  isNeededBy(record: ModelRecord): boolean {
    return needsOf(record).some((need) => {
      const inner = this.records.get(need)
      return this.has(need) || (inner !== undefined && this.isNeededBy(inner))
    })
  }

  /** It may be loaded again. */
  release(name: string): void {
    if (this.#reasons.delete(name)) this.options.onReleased?.(name)
  }

  #versionsOf(name: string, scan: RepositoryScan): readonly number[] {
    const { kept } = this.options
    const folder = kept?.loads().find((load) => load.name === name)?.upload?.folder ?? scan.folders.get(name)
    return folder === undefined ? [1] : versionsToServe(folder)
  }
}
