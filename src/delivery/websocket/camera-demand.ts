/** Union of the cameras that clients want something of, kept by counting. `*` stands for all. */
export class CameraDemand {
  readonly #counts = new Map<string, number>()

  get cameras(): ReadonlySet<string> {
    return new Set(this.#counts.keys())
  }

  has(camera: string): boolean {
    return this.#counts.has(camera)
  }

  /** @returns whether the union changed. */
  replace(before: readonly string[], after: readonly string[]): boolean {
    const known = new Set(this.#counts.keys())
    for (const camera of after) this.#counts.set(camera, (this.#counts.get(camera) ?? 0) + 1)
    for (const camera of before) {
      const left = (this.#counts.get(camera) ?? 0) - 1
      if (left > 0) this.#counts.set(camera, left)
      else this.#counts.delete(camera)
    }
    return known.size !== this.#counts.size || [...this.#counts.keys()].some((camera) => !known.has(camera))
  }
}
