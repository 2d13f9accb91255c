/** Lets models be tried side by side, as far as there is memory for what each of them may take. */
export class ProbeTurns {
  #underWay = 0
  readonly #waiting: (() => void)[] = []

  /** @param memoryBytes - most that one may take. */
  constructor(
    readonly memoryBytes: number,
    readonly availableBytes = () => process.availableMemory(),
  ) {}

  /** Tries a model when it is its turn. @throws what `probe` throws */
  async take(probe: () => Promise<void>): Promise<void> {
    while (!this.#hasRoom()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#underWay += 1
    try {
      await probe()
    } finally {
      this.#underWay -= 1
      for (const look of this.#waiting.splice(0)) look()
    }
  }

  /** Those under way may not have taken yet what they may. One is always tried. */
  #hasRoom(): boolean {
    return this.#underWay === 0 || (this.#underWay + 1) * this.memoryBytes <= this.availableBytes()
  }
}
