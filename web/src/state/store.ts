import { useEffect, useState } from 'preact/hooks'

/** A value that views can follow. */
export class Store<T> {
  readonly #listeners = new Set<() => void>()
  #value: T

  constructor(value: T) {
    this.#value = value
  }

  get value(): T {
    return this.#value
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    for (const listener of [...this.#listeners]) listener()
  }

  update(change: (value: T) => T): void {
    this.set(change(this.#value))
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** Renders again whenever the value changes. */
export function useStore<T>(store: Store<T>): T {
  const [, setVersion] = useState(0)
  useEffect(() => store.subscribe(() => setVersion((version) => version + 1)), [store])
  return store.value
}
