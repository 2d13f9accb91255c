/** Monotonic ms of this program, for how long something takes here. Wall times of the service come from a {@link ServiceClock}. */
export function monotonicMs(): number {
  return performance.now()
}

/** One answer with the service's time: what it said, and between which two of our times it must have said it. */
type Reading = Readonly<{ serviceMs: number; midMs: number; errorMs: number; driftMs: number }>

/** Clocks run apart: a good reading does not stay one for ever. */
const keptMs = 120_000
/** Wall and monotonic time of a computer differ by more once it slept, or its clock was set. */
const sleptMs = 1_000

/**
 * The service's wall clock, whatever that of this computer says: every time the service tells is of it, so ages and durations are too.
 *
 * It is the time of the quickest answer of the last two minutes. Before the first answer it is that of this computer.
 */
export class ServiceClock {
  #best: Reading | undefined

  /** @param monotonic - ms that never go back. @param wall - wall time of this computer, in ms. */
  constructor(
    readonly monotonic: () => number = monotonicMs,
    readonly wall: () => number = () => Date.now(),
  ) {}

  /** Wall time of the service in ms. */
  now(): number {
    if (this.#best === undefined) return this.wall()
    return this.#best.serviceMs + this.monotonic() - this.#best.midMs
  }

  /** Learns from an answer that said `serviceMs`; the question was sent at `askedMs` of the monotonic clock. */
  read(serviceMs: number, askedMs: number): void {
    if (!Number.isFinite(serviceMs)) return
    const nowMs = this.monotonic()
    const reading = {
      serviceMs,
      midMs: (askedMs + nowMs) / 2,
      errorMs: (nowMs - askedMs) / 2,
      driftMs: this.wall() - nowMs,
    }
    if (this.#best === undefined || this.#isBetter(reading, this.#best)) this.#best = reading
  }

  #isBetter(reading: Reading, best: Reading): boolean {
    const apartMs = Math.abs(reading.serviceMs - best.serviceMs - (reading.midMs - best.midMs))
    return (
      reading.errorMs <= best.errorMs ||
      reading.midMs - best.midMs > keptMs ||
      // Both cannot be right: the clock of the service was set, or monotonic time stood still.
      apartMs > reading.errorMs + best.errorMs + 1 ||
      Math.abs(reading.driftMs - best.driftMs) > sleptMs
    )
  }
}
