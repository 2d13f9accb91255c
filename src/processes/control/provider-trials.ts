import { unused } from '../../backends/onnxruntime/provider-uses.js'
import { GrowingTries } from '../../lifecycle/growing-tries.js'
import type { Log } from '../../lifecycle/log.js'
import type { EngineProcess } from '../engine/engine-process.js'

export type ProviderTrialsHost = Readonly<{
  /** Until the first trial. */
  firstMs: number
  engines: () => readonly EngineProcess[]
  /** An engine beside that one, without cameras, whose detector is not to run on the CPU; not started. */
  trialOf: (engine: EngineProcess) => EngineProcess
  /** Whether it would run what the others do; asked once it is ready. */
  mayGoOver: (to: EngineProcess) => boolean
  /** The cameras of the first go over to the second. Never rejects. */
  goOver: (from: EngineProcess, to: EngineProcess) => Promise<void>
  log: Log
}>

/**
 * Looks now and then whether a GPU that engines were to use, and that failed, runs their models again: an engine without cameras is started
 * beside the one that has them, in a process of its own. Where it comes up with fewer failures the cameras go over to it; else it ends.
 */
export class ProviderTrials {
  readonly #tries: GrowingTries
  #trial: EngineProcess | undefined
  #stopped = false

  constructor(readonly host: ProviderTrialsHost) {
    this.#tries = new GrowingTries({
      firstMs: host.firstMs,
      isNeeded: () => host.engines().some(isFailing),
      attempt: () => this.#tryAll(),
    })
  }

  /** To be called when an engine has told where its models run. */
  look(): void {
    this.#tries.look()
  }

  /** Idempotent, never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#tries.stop()
    await this.#trial?.stop(0)
  }

  /** One after another, so that few cameras are away at a time; what fails for one would for the others. */
  async #tryAll(): Promise<void> {
    for (const engine of this.host.engines().filter(isFailing)) if (!(await this.#try(engine))) return
  }

  /** @returns whether the cameras went over. */
  async #try(engine: EngineProcess): Promise<boolean> {
    const { trialOf, mayGoOver, goOver, log } = this.host
    const { index } = engine.health
    const trial = trialOf(engine)
    this.#trial = trial
    try {
      await trial.start()
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log.info({ engine: index, reason }, 'execution provider still fails')
    }
    const isBetter = trial.ready && unused(trial.providers).length < unused(engine.providers).length
    const goes = isBetter && !this.#stopped && mayGoOver(trial)
    if (goes) await goOver(engine, trial)
    else await trial.stop(0)
    this.#trial = undefined
    return goes
  }
}

function isFailing(engine: EngineProcess): boolean {
  return engine.ready && unused(engine.providers).length > 0
}
