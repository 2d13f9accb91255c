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
  readonly #listeners: readonly (readonly [StopSignal, () => void])[]
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
    this.#listeners = heard.map((name) => [name, () => this.#heard(name)])
    for (const [name, listener] of this.#listeners) source.on(name, listener)
  }

  /** `undefined` until there is one. */
  get first(): StopSignal | undefined {
    return this.#first
  }

  /** For what has no good order to end in: signals do what they do without us, and one that has come does it now. */
  release(): void {
    this.forget()
    if (this.#first !== undefined) this.source.exit(128 + constants.signals[this.#first])
  }

  forget(): void {
    for (const [name, listener] of this.#listeners) this.source.off(name, listener)
  }

  #heard(name: StopSignal): void {
    if (this.#first !== undefined) return this.source.exit(128 + constants.signals[name])
    this.#first = name
    this.#stop.abort()
  }
}
