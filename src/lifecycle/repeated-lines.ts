/** Lines that differ in numbers alone are told as one in this time. */
const everyMs = 60_000
/** Kinds that are told apart; what comes beyond them is told together. */
const mostKinds = 64

/** How often lines like one have come since it was told last. */
export type Repeats = Readonly<{ times: number; seconds: number }>

/** Writes a line. `repeats`: it stands for all that came since the last one of its kind; absent: it is the first. */
export type WriteLine = (repeats?: Repeats) => void

type Kind = { times: number; write: WriteLine; timer: NodeJS.Timeout }

/**
 * Lets the first line of a kind pass, and then once a minute one that stands for all that came since. Of a kind are lines that differ in
 * numbers and addresses. A kind of which none came for a minute is forgotten.
 */
export class RepeatedLines {
  readonly #kinds = new Map<string, Kind>()
  #closed = false

  /** @param write - called at once, or for the last line of its kind later; never after {@link close}. */
  line(text: string, write: WriteLine): void {
    const key = this.#keyOf(text)
    const kind = this.#kinds.get(key)
    if (kind !== undefined) {
      kind.times += 1
      kind.write = write
      return
    }
    if (!this.#closed) {
      const timer = setInterval(() => this.#minuteOver(key), everyMs).unref()
      this.#kinds.set(key, { times: 0, write, timer })
    }
    write()
  }

  /** Tells what has not been told. Idempotent. */
  close(): void {
    this.#closed = true
    for (const [key, kind] of this.#kinds) {
      clearInterval(kind.timer)
      this.#kinds.delete(key)
      if (kind.times > 0) kind.write({ times: kind.times, seconds: everyMs / 1_000 })
    }
  }

  #keyOf(text: string): string {
    const key = lineKind(text)
    return this.#kinds.has(key) || this.#kinds.size < mostKinds ? key : ''
  }

  #minuteOver(key: string): void {
    const kind = this.#kinds.get(key)
    if (kind === undefined) return
    const { times, write } = kind
    kind.times = 0
    if (times > 0) return write({ times, seconds: everyMs / 1_000 })
    clearInterval(kind.timer)
    this.#kinds.delete(key)
  }
}

/** A line without what changes in it: numbers, also hexadecimal ones, addresses, and words that stand for a number. */
export function lineKind(text: string): string {
  return text
    .slice(0, 400)
    .replace(/0x[0-9a-f]+|\b[0-9a-f]{4,}\b|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b(?:NOPTS|nan|inf)\b/gi, '#')
}
