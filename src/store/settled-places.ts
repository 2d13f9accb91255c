/** How far each sink is, and what of it is not written yet. */
export class SettledPlaces {
  readonly #known = new Map<string, number>()
  readonly #unwritten = new Map<string, number>()

  /** @returns false for what was known already. */
  settle(sink: string, position: number): boolean {
    if ((this.#known.get(sink) ?? 0) >= position) return false
    this.#known.set(sink, position)
    this.#unwritten.set(sink, position)
    return true
  }

  /** Of all sinks, written or not. */
  get known(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#known)
  }

  get unwritten(): ReadonlyMap<string, number> {
    return new Map(this.#unwritten)
  }

  written(places: ReadonlyMap<string, number>): void {
    for (const [sink, position] of places)
      if (this.#unwritten.get(sink) === position) this.#unwritten.delete(sink)
  }
}
