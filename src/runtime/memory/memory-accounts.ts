import type { SchedulerClock } from '../scheduler-clock.js'
import type { MemoryUse } from '../../lifecycle/memory-use.js'
import { MemoryAccount, type Worker } from './memory-account.js'

export type MemoryAccountsOptions = Readonly<{
  /** Most that a model may take above what it has once it is loaded. */
  limitBytes: number
  use: MemoryUse
  /** Threads that serve, at this moment: what they take belongs to no model. */
  ownThreads: () => readonly number[]
  clock: SchedulerClock
  /**
   * Models of which a run or the start of an instance is under way, or was at the last look, with the number of runs that ended. Called
   * before another one begins, and with each look.
   */
  onActive: (models: ReadonlyMap<string, number>) => void
  /** A model has taken more than it may. Its runs have been refused; only the end of the process ends them. */
  onOver: (model: string, reason: string) => void
}>

/** Between two looks while anything runs: so long may a model take what it may not. */
const lookMs = 50

/**
 * What each model takes of the memory of the process, which is one for all of them: what the process has grown by between two looks is
 * shared out by the pages that the threads of models, and those that serve, were the first to touch. What it has shrunk by is taken
 * off all accounts alike. Where the system counts no pages, all models that ran are charged in full.
 */
export class MemoryAccounts {
  readonly #accounts = new Set<MemoryAccount>()
  /** Pages that threads had touched at the last look. */
  readonly #faults = new Map<Worker | 'process', number>()
  /** Runs that ended, by model. */
  readonly #runs = new Map<string, number>()
  /** By the threads that serve, and by what is no model's, since the accounts were opened. */
  #ownBytes = 0
  #residentBytes = 0
  #cancelLook: (() => void) | undefined
  #over = false

  constructor(readonly options: MemoryAccountsOptions) {}

  /** An account for a model that is being loaded. */
  open(model: string): MemoryAccount {
    const account: MemoryAccount = new MemoryAccount(model, this.options.limitBytes, {
      begins: () => this.#begins(account),
      began: (worker) => this.#began(worker),
      isNew: (thread) => this.#faults.set(thread, 0),
      ended: () => this.#runs.set(model, (this.#runs.get(model) ?? 0) + 1),
      look: () => this.look(),
      forgot: (worker) => this.#faults.delete(worker),
      closed: () => this.#accounts.delete(account),
    })
    this.#accounts.add(account)
    return account
  }

  /** Shares out what the process has grown or shrunk by since the last look. */
  look(): void {
    const residentBytes = this.options.use.residentBytes()
    const grownBytes = residentBytes - this.#residentBytes
    this.#residentBytes = residentBytes
    const shares = this.#shares()
    if (grownBytes > 0) this.#charge(grownBytes, shares)
    else if (grownBytes < 0) this.#giveBack(-grownBytes)
    for (const account of this.#accounts) account.looked()
    this.#judge()
  }

  #begins(account: MemoryAccount): void {
    if (!account.isActive) this.#tell(account)
  }

  /** Work is on its way: looking at the memory, which takes some 50 us, does not hold it up. */
  #began(worker: Worker): void {
    if (this.#cancelLook === undefined) {
      // Nothing ran since the last look: what came and went meanwhile is no model's.
      this.#residentBytes = this.options.use.residentBytes()
      this.#touchedByUs()
      this.#touched('process')
      this.#lookLater()
    }
    if (worker !== 'start' && !this.#faults.has(worker)) this.#touched(worker)
  }

  #lookLater(): void {
    this.#cancelLook = this.options.clock.after(lookMs, () => {
      this.#cancelLook = undefined
      this.look()
      this.#tell()
      if ([...this.#accounts].some(({ isBusy }) => isBusy)) this.#lookLater()
    })
  }

  #tell(beginning?: MemoryAccount): void {
    if (this.#over) return
    const active = [...this.#accounts].filter((account) => account === beginning || account.isActive)
    this.options.onActive(new Map(active.map(({ model }) => [model, this.#runs.get(model) ?? 0])))
  }

  /** By all threads that serve. One that is new began since the last look. */
  #touchedByUs(): number {
    return this.options.ownThreads().reduce((sum, thread) => sum + (this.#touched(thread, 0) ?? 0), 0)
  }

  /** Pages since the last look. @returns undefined where the system does not tell. */
  #touched(thread: number | 'process', first?: number): number | undefined {
    const faults = this.options.use.pageFaults(thread)
    if (faults === undefined) return undefined
    const before = this.#faults.get(thread) ?? first ?? faults
    this.#faults.set(thread, faults)
    return Math.max(0, faults - before)
  }

  #shares(): Shares {
    const own = this.#touchedByUs()
    const whole = this.#touched('process')
    const shares: Share[] = []
    for (const account of this.#accounts)
      for (const worker of account.active)
        shares.push({ account, worker, pages: worker === 'start' ? 0 : (this.#touched(worker) ?? 0) })
    if (whole === undefined) return { own: undefined, shares }
    // A thread that has not told its number yet has what no other thread has.
    const known = shares.reduce((sum, { pages }) => sum + pages, own)
    const starts = shares.filter(({ worker }) => worker === 'start')
    for (const share of starts) share.pages = Math.max(0, whole - known) / starts.length
    return { own, shares }
  }

  #charge(bytes: number, { own, shares }: Shares): void {
    if (own === undefined) {
      for (const { account, worker } of shares) account.charge(worker, bytes)
      return
    }
    const all = shares.reduce((sum, { pages }) => sum + pages, own)
    if (all === 0) this.#ownBytes += bytes
    else {
      this.#ownBytes += (bytes * own) / all
      for (const { account, worker, pages } of shares) account.charge(worker, (bytes * pages) / all)
    }
  }

  #giveBack(bytes: number): void {
    const taken = [...this.#accounts].reduce((sum, account) => sum + account.takenBytes, this.#ownBytes)
    const left = taken <= bytes ? 0 : 1 - bytes / taken
    this.#ownBytes *= left
    for (const account of this.#accounts) account.shrink(left)
  }

  /** One model at a time: without it, what the others have may be within their limits. */
  #judge(): void {
    if (this.#over) return
    const worst = [...this.#accounts]
      .filter((account) => account.takenBytes > account.allowedBytes)
      .sort((a, b) => b.takenBytes - a.takenBytes)[0]
    if (worst === undefined) return
    this.#over = true
    const reason = overText(this.options.limitBytes, worst.takenBytes)
    worst.refuse(reason)
    this.options.onOver(worst.model, reason)
  }
}

type Share = { readonly account: MemoryAccount; readonly worker: Worker; pages: number }
/** `own` is undefined where the system counts no pages. */
type Shares = Readonly<{ own: number | undefined; shares: readonly Share[] }>

function overText(limitBytes: number, takenBytes: number): string {
  const inMiB = (bytes: number) => Math.round(bytes / 1024 ** 2)
  return `it took ${inMiB(takenBytes)} MiB, more memory than the ${inMiB(limitBytes)} MiB it may have beyond what it is loaded with (modelServer.modelMemoryBytes); it is not loaded again before it is asked for or changes`
}
