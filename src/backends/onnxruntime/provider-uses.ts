import type { ExecutionProvider } from '../../config/inference.js'
import type { Log } from '../../lifecycle/log.js'
import { noteText, type ProviderNote } from './provider-notes.js'
import { takesDevice } from './providers.js'

/** How a provider stands that a model runs on, or was to run on. */
export type ProviderUse = Readonly<{
  model: string
  version: string
  provider: ExecutionProvider
  /** Number of the GPU; empty where the provider is given none. */
  device: string
  /** Why it does not run the model, although it is installed; empty where it does. */
  failure: string
}>

/** Why models do not run on providers that are installed, each once. */
export function failuresIn(uses: readonly ProviderUse[]): readonly string[] {
  const texts = uses
    .filter(({ failure }) => failure !== '')
    .map(({ provider, failure: reason }) => noteText({ provider, reason }))
  return [...new Set(texts)]
}

/** Those that fail to run any instance of their model. Where some run, the others are started again by themselves. */
export function unused(uses: readonly ProviderUse[]): readonly ProviderUse[] {
  const placeOf = ({ model, version, provider, device }: ProviderUse) =>
    JSON.stringify([model, version, provider, device])
  const used = new Set(uses.filter(({ failure }) => failure === '').map(placeOf))
  return uses.filter((use) => !used.has(placeOf(use)))
}

/** Where an instance runs, and why not elsewhere. */
type Started = Readonly<{ provider: ExecutionProvider; notes: readonly ProviderNote[] }>

/** What is told of a load of a model. */
export interface ModelUses {
  /** An instance of that number runs, in the place of one before. @param deviceId - that it was to run on. */
  started(instance: number, started: Started, deviceId: number): void
  /** None of the providers runs it. @param reason - one clause. */
  failed(instance: number, providers: readonly ExecutionProvider[], deviceId: number, reason: string): void
  /** It was closed. What is known of a load that failed is kept until the next one. */
  closed(): void
}

/** By the number of the instance. */
type Load = Map<number, readonly ProviderUse[]>

/** How full a card is changes with each try. */
const figures = / [\d.]+ of [\d.]+ GiB used$/

/** Which providers run the models of this process and which fail: told in the log when that changes, not for each instance. */
export class ProviderUses {
  /** By model and version; of several loads the one that began to run last. */
  readonly #loads = new Map<string, Load>()
  /** What the log was told of each. */
  readonly #told = new Map<string, ReadonlyMap<string, ProviderNote>>()

  constructor(readonly log: Log) {}

  /** Each once; a provider that fails for some instances and runs others is there twice. */
  get all(): readonly ProviderUse[] {
    const uses = new Map<string, ProviderUse>()
    for (const load of this.#loads.values())
      for (const use of [...load.values()].flat()) uses.set(JSON.stringify(use), use)
    return [...uses.values()]
  }

  get unused(): readonly ProviderUse[] {
    return unused(this.all)
  }

  /** A load of a model begins. */
  open(model: string, version: string): ModelUses {
    const key = `${model}/${version}`
    const load: Load = new Map()
    const notes = new Map<number, readonly ProviderNote[]>()
    let isFailed = false
    const use = (provider: ExecutionProvider, deviceId: number, failure: string): ProviderUse => {
      const device = takesDevice(provider) ? String(deviceId) : ''
      return { model, version, provider, device, failure }
    }
    return {
      started: (instance, { provider, notes: given }, deviceId) => {
        isFailed = false
        this.#loads.set(key, load)
        const failing = given.filter(({ installed }) => installed)
        load.set(instance, [
          use(provider, deviceId, ''),
          ...failing.map((note) => use(note.provider, deviceId, note.reason)),
        ])
        notes.set(instance, given)
        this.#tell(model, key, provider, [...notes.values()].flat())
      },
      failed: (instance, providers, deviceId, reason) => {
        isFailed = true
        this.#loads.set(key, load)
        load.set(
          instance,
          providers.map((provider) => use(provider, deviceId, reason.replace(`${provider}: `, ''))),
        )
      },
      closed: () => {
        if (!isFailed && this.#loads.get(key) === load) this.#loads.delete(key)
      },
    }
  }

  #tell(model: string, key: string, provider: ExecutionProvider, notes: readonly ProviderNote[]): void {
    const before = this.#told.get(key)
    const now = new Map(notes.map((note) => [noteText(note).replace(figures, ''), note]))
    this.#told.set(key, now)
    for (const [text, note] of now) {
      if (before?.has(text) === true) continue
      const { installed } = note
      const fields = { model, note: noteText(note) }
      if (installed)
        this.log.warn({ ...fields, provider }, 'execution provider fails, another one runs the model')
      else this.log.info(fields, 'execution provider is not used')
    }
    for (const note of before?.values() ?? [])
      if (note.installed && !notes.some((each) => each.provider === note.provider))
        this.log.info({ model, note: noteText(note), provider }, 'execution provider runs the model again')
  }
}
