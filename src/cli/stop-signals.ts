import { constants } from 'node:os'

const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type StopSignal = (typeof names)[number]

/** Where signals come from and what a second one does; `process` outside of tests. */
export interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown
  off(signal: StopSignal, listener: () => void): unknown
  exit(code: number): void
}

/**
 * Signals that ask the process to stop, heard from the making of this on. The first asks for an end in good order, a second ends the
 * process at once with 128 + its number. Imports little, so that it can be made before the program is loaded.
 */
export class StopSignals {
  /** Aborts with the first. */
  readonly asked: AbortSignal
  readonly #stop = new AbortController()
  readonly #listeners = new Map<StopSignal, () => void>()
  #first: StopSignal | undefined

  /** @param ignoresHangup - whether SIGHUP was ignored at the start, as under `nohup`: it stays so, to the end of the process. */
  constructor(
    readonly source: SignalSource = process,
    ignoresHangup = false,
  ) {
    this.asked = this.#stop.signal
    // Without a listener it would end the process.
    if (ignoresHangup) source.on('SIGHUP', () => undefined)
    const heard = names.filter((name) => name !== 'SIGHUP' || !ignoresHangup)
    for (const name of heard) this.#listen(name, () => this.#heard(name))
  }

  /** `undefined` until there is one. */
  get first(): StopSignal | undefined {
    return this.#first
  }

  /** From now on SIGHUP does this and ends nothing, as it does to servers without a terminal; ignored at the start it stays so. */
  insteadOfHangup(action: () => void): void {
    if (this.#listeners.has('SIGHUP')) this.#listen('SIGHUP', action)
  }

  /** For what has no good order to end in: signals do what they do without us, and one that has come does it now. */
  release(): void {
    this.forget()
    if (this.#first !== undefined) this.source.exit(128 + constants.signals[this.#first])
  }

  forget(): void {
    for (const [name, listener] of this.#listeners) this.source.off(name, listener)
  }

  #listen(name: StopSignal, listener: () => void): void {
    const before = this.#listeners.get(name)
    this.source.on(name, listener)
    if (before !== undefined) this.source.off(name, before)
    this.#listeners.set(name, listener)
  }

  #heard(name: StopSignal): void {
    if (this.#first !== undefined) return this.source.exit(128 + constants.signals[name])
    this.#first = name
    this.#stop.abort()
  }
}
