import { emptyModelConfig } from '../../repository/model-config.js'
import type { LoadPlanner } from './load-planner.js'
import type { ModelLifecycle } from './model-lifecycle.js'
import { type ModelRecords, needsOf } from './model-records.js'

/** Takes models out of service, ensembles before what they run. */
export class ModelUnloads {
  constructor(
    readonly planner: LoadPlanner,
    readonly lifecycle: ModelLifecycle,
    readonly records: ModelRecords,
  ) {}

  /**
   * A model and the ensembles that run it; these are back when it is.
   *
   * @param unloadDependents - also the models it runs, which nobody asked for by name and no other runs.
   */
  unload(name: string, unloadDependents: boolean): void {
    const record = this.records.get(name)
    if (record === undefined) return
    const needs = needsOf(record)
    this.#retireDependents(name)
    this.lifecycle.retire(record)
    record.wanted = false
    record.explicit = false
    if (!unloadDependents) return
    for (const need of needs) {
      const inner = this.records.get(need)
      if (inner !== undefined && !inner.explicit && this.records.dependents(need).length === 0)
        this.unload(need, true)
    }
  }

  /** Everything. @param drainMs - longest that requests in the models may take to end. */
  retireAll(drainMs: number): void {
    const ensembleFirst = [...this.records.all()].sort((a, b) => needsOf(b).length - needsOf(a).length)
    for (const record of ensembleFirst) this.lifecycle.retire(record, undefined, drainMs)
  }

  /** Ensembles that run the model, and the ensembles that run these. */
  #retireDependents(name: string): void {
    for (const dependent of this.records.dependents(name)) {
      if (!this.planner.needsOf(dependent.definition?.config ?? emptyModelConfig).includes(name)) continue
      this.#retireDependents(dependent.name)
      this.lifecycle.retire(dependent, lostNeed(dependent.name, name))
    }
  }
}

function lostNeed(ensemble: string, need: string): string {
  return `ensemble '${ensemble}' depends on '${need}' which has no loaded version`
}
