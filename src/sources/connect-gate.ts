/** Lets at most `limit` decoders start at once, first come first served, so that a power cut does not end in a reconnect storm. */
export class ConnectGate {
  #open: number
  readonly #waiting: (() => void)[] = []

  constructor(readonly limit: number) {
    this.#open = limit
  }

  /**
   * Waits for a place.
   *
   * @returns what gives the place back, idempotent; nothing when the signal aborted first.
   */
  async enter(signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined
    if (this.#open > 0) this.#open -= 1
    else if (!(await this.#turn(signal))) return undefined
    let held = true
    return () => {
      if (held) this.#leave()
      held = false
    }
  }

  #leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#open += 1
  }

  #turn(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const mine = () => {
        signal.removeEventListener('abort', giveUp)
        resolve(true)
      }
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(mine), 1)
        resolve(false)
      }
      this.#waiting.push(mine)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }
}
