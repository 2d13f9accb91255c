/** 32-bit FNV-1a over the parts, so that every named thing of a world has a stream of its own. */
export function seedOf(...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5
  for (const char of parts.join('/')) {
    hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193)
  }
  return hash >>> 0
}

/** Mulberry32: small, fast, and the same on every machine. Not for secrets. */
export class Random {
  #state: number

  constructor(...seed: readonly (string | number)[]) {
    this.#state = seedOf(...seed)
  }

  /** Uniform in `[0, 1)`. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next()
  }

  /** Integer in `[0, end)`. */
  int(end: number): number {
    return Math.floor(this.next() * end)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** @throws RangeError if the list is empty. */
  pick<T>(list: readonly T[]): T {
    const item = list[this.int(list.length)]
    if (item === undefined) throw new RangeError('nothing to pick from')
    return item
  }
}
