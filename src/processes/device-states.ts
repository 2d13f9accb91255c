import { nowMs } from '../lifecycle/clock.js'

/** From a failure of a GPU until it is tried again; twice as long each time. */
const heldBack = { baseMs: 5_000, capMs: 300_000 }
/** One that has worked for so long since begins anew with a short wait. */
const provenMs = 600_000

type Failed = {
  times: number
  untilMs: number
  /** Since it was tried again and worked. */
  worksSinceMs: number | undefined
}

/** Which GPUs fail, and when each is tried again: for the engines and for the models of API clients. */
export class DeviceStates {
  /** Called when {@link used} may have changed. */
  onChange: () => void = () => undefined
  readonly #failed = new Map<number, Failed>()

  /** @param all - by number, one at least. */
  constructor(
    readonly all: readonly number[],
    readonly clock: () => number = nowMs,
  ) {}

  /** Those that nothing holds back; all, where each is held back. */
  get used(): readonly number[] {
    const now = this.clock()
    const used = this.all.filter((device) => (this.#failed.get(device)?.untilMs ?? 0) <= now)
    return used.length === 0 ? this.all : used
  }

  /** A GPU failed. @returns in how many milliseconds it is to be tried again; several failures at once are one. */
  failed(device: number): number {
    const now = this.clock()
    const before = this.#failed.get(device)
    if (before !== undefined && before.untilMs > now) return before.untilMs - now
    const worksForMs = before?.worksSinceMs === undefined ? 0 : now - before.worksSinceMs
    const times = before === undefined || worksForMs >= provenMs ? 0 : before.times + 1
    const forMs = Math.min(heldBack.capMs, heldBack.baseMs * 2 ** times)
    this.#failed.set(device, { times, untilMs: now + forMs, worksSinceMs: undefined })
    this.#tellFrom(now + forMs)
    this.onChange()
    return forMs
  }

  /** A timer counts from when the turn of the loop began, and so ends before its time where that was long. */
  #tellFrom(atMs: number): void {
    const leftMs = atMs - this.clock()
    if (leftMs <= 0) return this.onChange()
    setTimeout(() => this.#tellFrom(atMs), Math.ceil(leftMs)).unref()
  }

  /** It was tried again, and works. */
  works(device: number): void {
    const state = this.#failed.get(device)
    if (state === undefined || state.worksSinceMs !== undefined) return
    state.worksSinceMs = this.clock()
    state.untilMs = state.worksSinceMs
    this.onChange()
  }
}
