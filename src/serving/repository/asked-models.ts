import { nowMs } from '../../lifecycle/clock.js'

/** A model that could not be loaded is tried again by what asks for it after so long; the wait doubles with each failure. */
const again = { firstMs: 1_000, mostMs: 60_000 }
/** Requests for names that nobody knows do not read the folders each time. */
const lookEveryMs = 1_000

export type AskedModelsHost = Readonly<{
  /** Names that the repositories have, and that may be asked for. */
  names(): readonly string[]
  /** Of names that nobody has asked for, those that are to serve once all are asked for. */
  allOf(names: readonly string[]): readonly string[]
  isServed(name: string): boolean
  /** Resolves when it serves or has a reason why not; rejects with the reason of `closing` where it was not begun. */
  load(name: string): Promise<void>
  /** Once aborted, nothing more is loaded. */
  closing: AbortSignal
  nowMs?: () => number
}>

type Asked = {
  /** Settles once it serves or has a reason why not; absent: it has been so far. */
  loading: Promise<void> | undefined
  failures: number
  /** After failures: when it is tried again. */
  againAtMs: number
}

/** Which models somebody has asked for. Each is loaded when that first happens, once for all who ask at a time. */
export class AskedModels {
  readonly #asked = new Map<string, Asked>()
  readonly #nowMs: () => number
  #names: ReadonlySet<string> = new Set()
  #lookedAtMs = -Infinity
  /** What was left out when all were asked for; it can be asked for by name. */
  readonly #leftOut = new Set<string>()
  #allAsked = false

  constructor(readonly host: AskedModelsHost) {
    this.#nowMs = host.nowMs ?? nowMs
  }

  /** Whether all models have been asked for. */
  get allAsked(): boolean {
    return this.#allAsked
  }

  has(name: string): boolean {
    return this.#asked.has(name)
  }

  /** Whether it can be asked for. */
  knows(name: string): boolean {
    return this.#known().has(name)
  }

  /**
   * Somebody wants a model. Every request asks.
   *
   * @returns undefined where there is nothing to wait for; else what resolves when the model serves or has a reason why not, and rejects
   * with the reason of `closing`.
   */
  ask(name: string): Promise<void> | undefined {
    const asked = this.#asked.get(name)
    if (asked?.loading !== undefined) return asked.loading
    return this.#isDue(name, asked) ? this.#begin(name, asked) : undefined
  }

  /** Somebody wants to know whether all serve. @returns as {@link ask}; it never rejects */
  askAll(): Promise<void> | undefined {
    const due = [...this.#known()].filter((name) => !this.#leftOut.has(name) && this.#isWanted(name))
    const names = this.host.allOf(due)
    for (const name of due) if (!names.includes(name)) this.#leftOut.add(name)
    const loading = names.flatMap((name) => this.ask(name) ?? [])
    if (loading.length > 0) return Promise.allSettled(loading).then(() => this.#all())
    this.#all()
    return undefined
  }

  #all(): void {
    this.#allAsked = !this.host.closing.aborted
  }

  /** It is on its way, or would be. */
  #isWanted(name: string): boolean {
    const asked = this.#asked.get(name)
    return asked?.loading !== undefined || this.#isDue(name, asked)
  }

  #isDue(name: string, asked: Asked | undefined): boolean {
    if (asked !== undefined) return asked.failures > 0 && this.#nowMs() >= asked.againAtMs
    return !this.host.isServed(name) && this.#known().has(name)
  }

  #known(): ReadonlySet<string> {
    if (this.#nowMs() - this.#lookedAtMs >= lookEveryMs) {
      this.#names = new Set(this.host.names())
      this.#lookedAtMs = this.#nowMs()
    }
    return this.#names
  }

  #begin(name: string, asked: Asked = { loading: undefined, failures: 0, againAtMs: 0 }): Promise<void> {
    this.#asked.set(name, asked)
    const loading = this.#load(name, asked)
    asked.loading = loading
    return loading
  }

  async #load(name: string, asked: Asked): Promise<void> {
    try {
      this.host.closing.throwIfAborted()
      await this.host.load(name)
    } finally {
      asked.loading = undefined
      asked.failures = this.host.isServed(name) ? 0 : asked.failures + 1
      asked.againAtMs = this.#nowMs() + Math.min(again.mostMs, again.firstMs * 2 ** (asked.failures - 1))
    }
  }
}
