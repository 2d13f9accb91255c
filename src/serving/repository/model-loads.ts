import { backoffMs } from '../../lifecycle/backoff.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { isSystemLimit } from '../../lifecycle/system-limit.js'
import type { LoadPlanner } from './load-planner.js'
import type { ModelDefinition } from './model-definition.js'
import { messageOf, type ModelLifecycle } from './model-lifecycle.js'
import type { ModelRecords } from './model-records.js'
import type { RepositoryScan } from './repository-files.js'
import type { UploadedModel } from './uploaded-model.js'

/** Between tries of models that a limit of the system keeps from being loaded. */
const limitBackoff = { baseMs: 1_000, capMs: 30_000 }

/** What loading needs of the manager of the models. */
export type ModelLoadsHost = Readonly<{
  planner: LoadPlanner
  lifecycle: ModelLifecycle
  records: ModelRecords
  scan(): RepositoryScan
  /** One change after another. */
  inOrder(change: () => Promise<void>): Promise<void>
  /** Once aborted, nothing more is loaded. */
  closing: AbortSignal
  log: Log
}>

/** Loads models of the repositories as they are planned. */
export class ModelLoads {
  constructor(readonly host: ModelLoadsHost) {}

  /**
   * Loads models; each failure stays with its model. Where one is a limit of the system, those that failed are tried again.
   *
   * @param tries - how often that was done.
   */
  async bringAll(names: readonly string[], scan: RepositoryScan, tries = 0): Promise<void> {
    const failed = await this.#bringEach(names, scan)
    if ([...failed.values()].some(isSystemLimit)) void this.#tryAgain([...failed.keys()], tries)
  }

  /** Loads what an ensemble runs before the ensemble itself. @throws ServingError */
  async bringWithNeeds(
    definition: ModelDefinition,
    scan: RepositoryScan,
    upload: UploadedModel | undefined,
  ): Promise<void> {
    const { planner, lifecycle } = this.host
    for (const each of planner.planWithNeeds(definition, scan))
      if (each === definition) await lifecycle.bring(each, upload)
      else await lifecycle.bring(each, undefined).catch(() => undefined)
  }

  /** @returns what failed, with why. */
  async #bringEach(names: readonly string[], scan: RepositoryScan): Promise<ReadonlyMap<string, unknown>> {
    const { planner, lifecycle, records, closing } = this.host
    const { order, circular, unreadable } = planner.planOf(names, scan)
    const failed = new Map(unreadable)
    for (const [name, error] of unreadable) lifecycle.failed(records.of(name), messageOf(error))
    for (const [name, why] of circular) lifecycle.failed(records.of(name), why)
    for (const definition of order)
      if (!closing.aborted)
        await lifecycle
          .bring(definition, undefined)
          .catch((error: unknown) => failed.set(definition.name, error))
    return failed
  }

  async #tryAgain(names: readonly string[], tries: number): Promise<void> {
    const { records, scan, inOrder, closing, log } = this.host
    const waitMs = backoffMs(tries, limitBackoff)
    log.warn({ models: names, waitMs: Math.round(waitMs) }, 'models are tried again')
    if (!(await delay(waitMs, closing))) return
    const bring = (): Promise<void> => {
      const left = names.filter((name) => {
        const record = records.get(name)
        return record?.wanted === true && record.definition?.overridden !== true
      })
      return this.bringAll(left, scan(), tries + 1)
    }
    await inOrder(bring).catch((error: unknown) => {
      if (!closing.aborted) log.error({ err: error }, 'models cannot be tried again')
    })
  }
}
