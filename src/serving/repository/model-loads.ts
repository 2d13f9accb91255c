import { backoffMs } from '../../lifecycle/backoff.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { StepGate } from '../../ensemble/step-gate.js'
import { isPassing } from '../../lifecycle/system-limit.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { KeptLoad } from './kept-loads.js'
import type { LoadPlanner, PlannedLoad } from './load-planner.js'
import type { ModelDefinition } from '../../repository/model-definition.js'
import { messageOf, type ModelLifecycle } from './model-lifecycle.js'
import type { ModelRecords } from './model-records.js'
import type { RepositoryScan } from '../../repository/repository-files.js'
import { sideBySide } from './side-by-side.js'
import type { UploadedModel } from './uploaded-model.js'

/** Between tries of models that what the machine lacks keeps from being loaded: a limit of the system, or a GPU that fails. */
const lackBackoff = { baseMs: 1_000, capMs: 30_000 }

/** What loading needs of the manager of the models. */
export type ModelLoadsHost = Readonly<{
  planner: LoadPlanner
  lifecycle: ModelLifecycle
  records: ModelRecords
  scan(): RepositoryScan
  /** After all changes that were asked for before, and before all that are asked for later. */
  alone(change: () => Promise<void>): Promise<void>
  /** Once aborted, nothing more is loaded. */
  closing: AbortSignal
  /** So many models are loaded side by side, whoever asked for them. */
  atATime: number
  log: Log
}>

/** Loads models as they are planned, side by side. */
export class ModelLoads {
  /** Several may be asked for at once. */
  readonly #places: StepGate

  constructor(readonly host: ModelLoadsHost) {
    this.#places = new StepGate(host.atATime)
  }

  /**
   * Loads models of the repositories; each failure stays with its model. Where one is for something the machine lacks, those that failed
   * are tried again.
   *
   * @param kept - loaded with them: what clients had loaded before this process took the place of another.
   */
  async bringAll(
    names: readonly string[],
    scan: RepositoryScan,
    kept: readonly KeptLoad[] = [],
  ): Promise<void> {
    await this.#bringAll(names, scan, { kept })
  }

  /**
   * Loads a model that somebody named, with those it needs. A failure stays with the model.
   *
   * @throws the reason of `closing` where not all of it was begun
   */
  async bringNamed(name: string, scan: RepositoryScan): Promise<void> {
    const isWhole = await this.#bringAll([name], scan, { byName: [name] })
    if (!isWhole) this.host.closing.throwIfAborted()
  }

  /** Loads what an ensemble runs before the ensemble itself. @throws ServingError; the reason of `closing` */
  async bringWithNeeds(
    definition: ModelDefinition,
    scan: RepositoryScan,
    upload: UploadedModel | undefined,
  ): Promise<void> {
    let failure: Error | undefined
    const loads = this.host.planner.planWithNeeds(definition, scan, upload)
    const isWhole = await this.#bring(loads, (name, error) => {
      if (name === definition.name) failure = error as Error
    })
    if (failure !== undefined) throw failure
    if (!isWhole) this.host.closing.throwIfAborted()
  }

  /**
   * @param tries - how often they were tried before.
   * @returns whether each was begun.
   */
  async #bringAll(
    names: readonly string[],
    scan: RepositoryScan,
    {
      kept = [],
      byName,
      tries = 0,
    }: Readonly<{ kept?: readonly KeptLoad[]; byName?: readonly string[]; tries?: number }>,
  ): Promise<boolean> {
    const { planner, lifecycle, records } = this.host
    const { loads, circular, unreadable } = planner.planOf(names, scan, kept, byName)
    const asked = new Map(kept.map((load) => [load.name, load]))
    const failed = new Map<string, unknown>()
    const fail = (name: string, error: unknown): void => {
      const load = asked.get(name)
      if (load === undefined) failed.set(name, error)
      else this.#failedAgain(load, error)
    }
    const tell = (name: string, error: unknown): void => {
      if (!asked.has(name)) lifecycle.failed(records.of(name), messageOf(error))
    }
    for (const [name, error] of unreadable) {
      tell(name, error)
      fail(name, error)
    }
    for (const [name, why] of circular) {
      tell(name, why)
      if (asked.has(name)) fail(name, new ServingError('INVALID_ARG', why))
    }
    const isWhole = await this.#bring(loads, fail)
    if ([...failed.values()].some(isPassing)) void this.#tryAgain([...failed.keys()], tries)
    return isWhole
  }

  /** @returns whether each was begun: nothing is once the server stops. */
  async #bring(
    loads: readonly PlannedLoad[],
    onFailure: (name: string, error: unknown) => void,
  ): Promise<boolean> {
    const { lifecycle, atATime, closing } = this.host
    let begun = 0
    const bring = async ({ name, definition, upload }: PlannedLoad): Promise<void> => {
      if (closing.aborted) return
      begun += 1
      await lifecycle.bring(definition, upload).catch((error: unknown) => onFailure(name, error))
    }
    await sideBySide(loads, atATime, (load) => this.#places.through(closing, () => bring(load)), closing)
    return begun === loads.length
  }

  /** What a client asked for once, and cannot be loaded any more, does not make the server less ready. */
  #failedAgain({ name, upload }: KeptLoad, error: unknown): void {
    const { records, log } = this.host
    const record = records.get(name)
    if (upload !== undefined && record?.upload !== upload) upload.remove()
    if (record !== undefined) record.wanted = false
    log.error({ model: name, err: error }, 'model that a client had loaded cannot be loaded')
  }

  async #tryAgain(names: readonly string[], tries: number): Promise<void> {
    const { records, scan, alone, closing, log } = this.host
    const waitMs = backoffMs(tries, lackBackoff)
    log.warn({ models: names, waitMs: Math.round(waitMs) }, 'models are tried again')
    if (!(await delay(waitMs, closing))) return
    const bring = async (): Promise<void> => {
      const left = names.filter((name) => {
        const record = records.get(name)
        return record?.wanted === true && record.definition?.overridden !== true
      })
      await this.#bringAll(left, scan(), { tries: tries + 1 })
    }
    await alone(bring).catch((error: unknown) => {
      if (!closing.aborted) log.error({ err: error }, 'models cannot be tried again')
    })
  }
}
