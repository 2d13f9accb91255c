import { unreadableText, type UnreadableRepositories } from '../../inference/repository-folder.js'
import type { ModelConfig } from '../../inference/model-config.js'
import type { Log } from '../../lifecycle/log.js'
import { isSystemLimit } from '../../lifecycle/system-limit.js'
import { ServingError } from '../serving-error.js'
import type { HeldOut } from './held-out.js'
import type { KeptLoads } from './kept-loads.js'
import { loadOrder } from './load-order.js'
import {
  needsOf as needsOfConfig,
  onlyForGpus,
  readDefinition,
  stepsOf,
  type ModelDefinition,
} from './model-definition.js'
import { messageOf } from './model-lifecycle.js'
import type { ModelRecords } from './model-records.js'
import type { ModelFolder, RepositoryScan } from './repository-files.js'

export type LoadPlannerOptions = Readonly<{
  control: 'none' | 'poll' | 'explicit'
  /** With `explicit`: what to load at the start; `*` is everything. */
  load: readonly string[]
  /** Whether there is a GPU that models may run on: without one, models that ensembles have for GPUs are loaded only by name. */
  onGpu?: boolean
  /** What clients loaded and unloaded before this process took the place of another. */
  kept?: KeptLoads
  log: Log
}>

/** What is to be loaded. */
export type LoadPlan = Readonly<{
  /** Each after those it needs. */
  order: readonly ModelDefinition[]
  /** Names that cannot have a place in it, with why. */
  circular: ReadonlyMap<string, string>
  /** Names of what cannot be read, with why. */
  unreadable: ReadonlyMap<string, unknown>
}>

/** Reads what models are and what they need, and says what is to be loaded in which order. It loads nothing. */
export class LoadPlanner {
  /** @param unreadable - repositories that cannot be read now. */
  constructor(
    readonly options: LoadPlannerOptions,
    readonly records: ModelRecords,
    readonly heldOut: HeldOut,
    readonly unreadable: () => UnreadableRepositories,
  ) {}

  /** What the control mode says, without what clients have decided on. */
  namesAtStart(scan: RepositoryScan): readonly string[] {
    const { control, load, kept } = this.options
    const names =
      control !== 'explicit' || load.includes('*')
        ? [...scan.folders.keys(), ...scan.ambiguous.keys()].sort()
        : load
    return names.filter((name) => !this.heldOut.has(name) && kept?.has(name) !== true)
  }

  /** Models that must be loaded before one of that configuration on this machine. */
  needsOf(config: ModelConfig): readonly string[] {
    return this.options.onGpu === true ? needsOfConfig(config) : stepsOf(config)
  }

  /** @throws ServingError where there is none, or more than one */
  folderOf(name: string, scan: RepositoryScan): ModelFolder {
    const folder = scan.folders.get(name)
    if (folder !== undefined) return folder
    const ambiguous = scan.ambiguous.get(name)
    if (ambiguous !== undefined) throw new ServingError('INTERNAL', ambiguous)
    throw notPolled(
      name,
      [...this.unreadable()].map(([dir, reason]) => unreadableText(dir, reason)).join('; '),
    )
  }

  /** @param configJson - replaces `config.pbtxt`. @throws ServingError, as a client that asked for the model is told */
  read(folder: ModelFolder, configJson?: string): ModelDefinition {
    try {
      return readDefinition(folder, configJson)
    } catch (error) {
      this.options.log.error({ model: folder.name, err: error }, 'model cannot be read')
      throw new ServingError(
        isSystemLimit(error) ? 'UNAVAILABLE' : 'INTERNAL',
        `failed to load '${folder.name}', failed to poll from model repository: ${messageOf(error)}`,
        'OTHER',
        error,
      )
    }
  }

  /** Models of the repositories, with those they need. What is wrong with one stays with it. */
  planOf(names: readonly string[], scan: RepositoryScan): LoadPlan {
    const definitions = new Map<string, ModelDefinition>()
    const unreadable = new Map<string, unknown>()
    // The list grows by what ensembles need.
    const wanted = [...names]
    for (const name of wanted) {
      if (definitions.has(name)) continue
      try {
        const definition = readDefinition(this.folderOf(name, scan))
        definitions.set(name, definition)
        wanted.push(
          ...this.needsOf(definition.config).filter(
            (need) => scan.folders.has(need) && !this.heldOut.has(need),
          ),
        )
      } catch (error) {
        unreadable.set(name, error)
      }
    }
    this.#leaveOutForGpus(definitions)
    return { ...orderOf(definitions), unreadable }
  }

  /** A model with those it needs. @throws ServingError what cannot be read, or needs itself */
  planWithNeeds(definition: ModelDefinition, scan: RepositoryScan): readonly ModelDefinition[] {
    const definitions = new Map([[definition.name, definition]])
    for (const { config } of definitions.values())
      for (const need of this.needsOf(config)) {
        const folder = scan.folders.get(need)
        // A model with what a client sent serves as it is.
        const sent = this.records.get(need)?.definition?.overridden === true
        if (folder === undefined || sent || definitions.has(need) || this.heldOut.has(need)) continue
        definitions.set(need, this.read(folder))
      }
    const { order, circular } = orderOf(definitions)
    const circle = circular.get(definition.name)
    if (circle !== undefined) throw new ServingError('INVALID_ARG', circle)
    return order
  }

  /** Drops models that only stand in for steps of ensembles on a GPU, where there is none and nobody asked for them by name. */
  #leaveOutForGpus(definitions: Map<string, ModelDefinition>): void {
    if (this.options.onGpu === true) return
    const known = [
      ...definitions.values(),
      ...this.records.all().flatMap(({ definition }) => definition ?? []),
    ]
    const named = this.options.control === 'explicit' ? this.options.load : []
    for (const name of onlyForGpus(known, named)) {
      const record = this.records.get(name)
      // A client has loaded it.
      if ((record?.serving.length ?? 0) > 0) continue
      definitions.delete(name)
      if (record !== undefined) record.wanted = false
    }
  }
}

/** What a client is told of a name that is not there. */
export function notPolled(name: string, reason = ''): ServingError {
  const why = reason === '' ? '' : `: ${reason}`
  return new ServingError('INTERNAL', `failed to load '${name}', failed to poll from model repository${why}`)
}

function orderOf(definitions: ReadonlyMap<string, ModelDefinition>): Omit<LoadPlan, 'unreadable'> {
  const { order, circular } = loadOrder(
    new Map([...definitions].map(([name, { config }]) => [name, needsOfConfig(config)])),
  )
  return {
    order: order.flatMap((name) => definitions.get(name) ?? []),
    circular: new Map(
      [...circular].map(([name, circle]) => [name, `circular dependency between ensembles: ${circle}`]),
    ),
  }
}
