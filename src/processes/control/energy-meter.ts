/** Energy by a power that is read every so often. */
export class EnergyMeter {
  #joules: number | undefined
  #last: Readonly<{ watts: number; atMs: number }> | undefined

  /** @param gapMs - of two readings that lie further apart nothing is counted: nobody knows what was between them. */
  constructor(readonly gapMs: number) {}

  /** Since the first reading, to the millijoule; `null` while there was none. */
  get joules(): number | null {
    return this.#joules === undefined ? null : Math.round(this.#joules * 1e3) / 1e3
  }

  /** @param watts - `null` where it could not be read. */
  read(watts: number | null, atMs: number): void {
    const last = this.#last
    this.#last = watts === null ? undefined : { watts, atMs }
    if (watts === null) return
    this.#joules ??= 0
    if (last === undefined || atMs - last.atMs > this.gapMs) return
    this.#joules += ((last.watts + watts) / 2) * ((atMs - last.atMs) / 1e3)
  }

  /** What passes until the next reading is not counted. */
  pause(): void {
    this.#last = undefined
  }
}
