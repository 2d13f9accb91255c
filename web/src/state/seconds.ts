import { useEffect, useRef, useState } from 'preact/hooks'

const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

/** Calls the listener once a second, with all others on one timer. @returns what ends it. */
export function everySecond(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    for (const each of [...listeners]) each()
  }, 1_000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** A value that is looked up once a second; renders again only when it is another one. */
export function useEachSecond<T extends string | number | boolean | undefined>(read: () => T): T {
  const [, show] = useState<T>(read)
  const newest = useRef(read)
  newest.current = read
  useEffect(() => everySecond(() => show(newest.current())), [])
  return read()
}
