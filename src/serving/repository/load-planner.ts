import { basename } from 'node:path'
import { unreadableText, type UnreadableRepositories } from '../../repository/repository-folder.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { parseModelConfigJson } from '../../repository/model-config-json.js'
import { readModelConfig } from '../../repository/model-config-text.js'
import type { Log } from '../../lifecycle/log.js'
import { isSystemLimit } from '../../lifecycle/system-limit.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { HeldOut } from './held-out.js'
import type { KeptLoad, KeptLoads } from './kept-loads.js'
import { loadOrder } from './load-order.js'
import {
  type ModelDefinition,
  needsOfConfig,
  onlyForGpus,
  readDefinition,
  stepsOf,
} from '../../repository/model-definition.js'
import { repositoryNames } from '../../repository/repository-names.js'
import { backendOf } from '../../repository/supported-config.js'
import { messageOf } from './model-lifecycle.js'
import type { ModelRecords } from './model-records.js'
import {
  bytesOf,
  type ModelFolder,
  printModel,
  type RepositoryScan,
  samePrint,
} from '../../repository/repository-files.js'
import type { Job } from './side-by-side.js'
import type { UploadedModel } from './uploaded-model.js'

/** What loads models: as `models.control` has it; with `asked`, the first that asks for one. */
export type ModelControl = 'none' | 'poll' | 'explicit' | 'asked'

export type LoadPlannerOptions = Readonly<{
  control: ModelControl
  /** With `explicit`: what to load at the start; `*` is everything. */
  load: readonly string[]
  /** Whether there is a GPU that models may run on: without one, models that ensembles have for GPUs are loaded only by name. */
  onGpu?: boolean
  /** What clients loaded and unloaded before this process took the place of another. */
  kept?: KeptLoads
  log: Log
}>

/** A model that is to be loaded. */
export type PlannedLoad = Job &
  Readonly<{
    definition: ModelDefinition
    /** Files that a client sent. */
    upload: UploadedModel | undefined
  }>

/** What is to be loaded. */
export type LoadPlan = Readonly<{
  /** Without those that cannot have a place in it. */
  loads: readonly PlannedLoad[]
  /** Names of those, with why. */
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
    if (control === 'asked') return []
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

  /**
   * Models that a load would bring along, and those that these need, as far as their configurations can be read.
   *
   * @param config - as {@link asked}.
   */
  namesOfNeeds(name: string, config: string | undefined, scan: RepositoryScan): readonly string[] {
    const names = new Set<string>()
    const add = (each: string, json?: string): void => {
      for (const need of this.#needsAsWritten(each, json, scan))
        if (!names.has(need)) {
          names.add(need)
          add(need)
        }
    }
    add(name, config)
    return [...names]
  }

  #needsAsWritten(name: string, json: string | undefined, scan: RepositoryScan): readonly string[] {
    const folder = scan.folders.get(name)
    const { definition } = this.records.get(name) ?? {}
    const sent = json === undefined && definition?.overridden === true ? this.needsOf(definition.config) : []
    try {
      if (json !== undefined) return this.needsOf(parseModelConfigJson(json, name))
      return folder === undefined ? sent : [...sent, ...this.needsOf(readModelConfig(folder.configFile))]
    } catch {
      // The load itself says why it cannot be read.
      return sent
    }
  }

  /** @throws ServingError where there is none, or more than one */
  #folderOf(name: string, scan: RepositoryScan): ModelFolder {
    const folder = scan.folders.get(name)
    if (folder !== undefined) return folder
    const ambiguous = scan.ambiguous.get(name)
    if (ambiguous !== undefined) throw notPolled(name, ambiguous)
    const unreadable = [...this.unreadable()]
    const names = repositoryNames(unreadable.map(([dir]) => dir))
    throw notPolled(
      name,
      unreadable.map(([dir, reason]) => unreadableText(names.get(dir) ?? basename(dir), reason)).join('; '),
    )
  }

  /**
   * What a client asks for, or asked for once. Without a configuration, the one that was sent before goes on while the files are the same.
   *
   * @throws ServingError
   */
  asked({ name, config, upload }: KeptLoad, scan: RepositoryScan): ModelDefinition {
    const sent = config === undefined && upload === undefined ? this.#sentBefore(name, scan) : undefined
    if (sent !== undefined) return sent
    const definition = this.#read(upload?.folder ?? this.#folderOf(name, scan), config)
    if (upload !== undefined && backendOf(definition.config) === 'js')
      throw new ServingError('UNSUPPORTED', `failed to load '${name}', code is not taken from clients`)
    return definition
  }

  /** What serves with a configuration that a client sent; none where the repository's files have changed since, or files were sent too. */
  #sentBefore(name: string, scan: RepositoryScan): ModelDefinition | undefined {
    const { definition, upload } = this.records.get(name) ?? {}
    const folder = scan.folders.get(name)
    if (definition?.overridden !== true || upload !== undefined || folder?.dir !== definition.folder.dir)
      return undefined
    try {
      return samePrint(definition.print, printModel(folder, definition.filesDir)) ? definition : undefined
    } catch {
      // Its files come and go: the load says so.
      return undefined
    }
  }

  /** @param configJson - replaces `config.pbtxt`. @throws ServingError, as a client that asked for the model is told */
  #read(folder: ModelFolder, configJson?: string): ModelDefinition {
    try {
      return readDefinition(folder, configJson)
    } catch (error) {
      this.options.log.error({ model: folder.name, err: error }, 'model cannot be read')
      throw new ServingError(
        isSystemLimit(error) ? 'UNAVAILABLE' : 'INTERNAL',
        `failed to load '${folder.name}', failed to poll from model repository: ${messageOf(error, folder)}`,
        'OTHER',
        error,
      )
    }
  }

  /**
   * Models of the repositories, with those they need. What is wrong with one stays with it.
   *
   * @param kept - what clients had loaded, which is as they asked for it also where others need it.
   * @param byName - of the names, those that somebody gave, which are loaded also where they only stand in for steps on a GPU.
   */
  planOf(
    names: readonly string[],
    scan: RepositoryScan,
    kept: readonly KeptLoad[] = [],
    byName: readonly string[] = this.options.control === 'explicit' ? this.options.load : [],
  ): LoadPlan {
    const definitions = new Map<string, ModelDefinition>()
    const unreadable = new Map<string, unknown>()
    // The list grows by what ensembles need.
    const wanted = [...names]
    const add = (name: string, read: () => ModelDefinition): void => {
      if (definitions.has(name) || unreadable.has(name)) return
      try {
        const definition = read()
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
    for (const load of kept) add(load.name, () => this.asked(load, scan))
    for (const name of wanted) add(name, () => readDefinition(this.#folderOf(name, scan)))
    this.#leaveOutForGpus(definitions, [...byName, ...kept.map((load) => load.name)])
    return { ...planned(definitions, new Map(kept.map((load) => [load.name, load.upload]))), unreadable }
  }

  /** Of the names, what is loaded where nobody gives its name, each after what it needs: not what only stands in for steps on a GPU. */
  unnamedOf(names: readonly string[], scan: RepositoryScan): readonly string[] {
    const { loads, circular, unreadable } = this.planOf(names, scan)
    const all = [...loads.map(({ name }) => name), ...circular.keys(), ...unreadable.keys()]
    return all.filter((name) => names.includes(name))
  }

  /** A model with those it needs. @throws ServingError what cannot be read, or needs itself */
  planWithNeeds(
    definition: ModelDefinition,
    scan: RepositoryScan,
    upload: UploadedModel | undefined,
  ): readonly PlannedLoad[] {
    const definitions = new Map([[definition.name, definition]])
    for (const { config } of definitions.values())
      for (const need of this.needsOf(config)) {
        const folder = scan.folders.get(need)
        // A model with what a client sent serves as it is.
        const sent = this.records.get(need)?.definition?.overridden === true
        if (folder === undefined || sent || definitions.has(need) || this.heldOut.has(need)) continue
        definitions.set(need, this.#read(folder))
      }
    const { loads, circular } = planned(definitions, new Map([[definition.name, upload]]))
    const circle = circular.get(definition.name)
    if (circle !== undefined) throw new ServingError('INVALID_ARG', circle)
    return loads
  }

  /** Drops models that only stand in for steps of ensembles on a GPU, where there is none and nobody asked for them by name. */
  #leaveOutForGpus(definitions: Map<string, ModelDefinition>, named: readonly string[]): void {
    if (this.options.onGpu === true) return
    const known = [
      ...definitions.values(),
      ...this.records.all().flatMap(({ definition }) => definition ?? []),
    ]
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

function planned(
  definitions: ReadonlyMap<string, ModelDefinition>,
  uploads: ReadonlyMap<string, UploadedModel | undefined>,
): Omit<LoadPlan, 'unreadable'> {
  const { order, circular } = loadOrder(
    new Map([...definitions].map(([name, { config }]) => [name, needsOfConfig(config)])),
  )
  return {
    loads: order.flatMap((name) => {
      const definition = definitions.get(name)
      if (definition === undefined) return []
      const { config, print } = definition
      return [
        { name, definition, upload: uploads.get(name), needs: needsOfConfig(config), size: bytesOf(print) },
      ]
    }),
    circular: new Map(
      [...circular].map(([name, circle]) => [name, `circular dependency between ensembles: ${circle}`]),
    ),
  }
}
