import { setTimeout as timeout } from 'node:timers/promises'

/** Waits `forMs`, or less if the signal aborts. Never rejects: `false` says that the wait was cut short. */
export async function delay(forMs: number, signal: AbortSignal): Promise<boolean> {
  try {
    await timeout(forMs, undefined, { signal })
    return true
  } catch {
    return false
  }
}

/** Settles like `work`, or resolves `undefined` once `forMs` have passed. The work itself goes on. */
export async function atMost<T>(forMs: number, work: Promise<T>): Promise<T | undefined> {
  const cut = new AbortController()
  const timer = delay(forMs, cut.signal).then(() => undefined)
  try {
    return await Promise.race([work, timer])
  } finally {
    cut.abort()
  }
}

/** Settles like `work`, or rejects with the reason of the signal once that aborts. The work itself goes on. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let cut: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    cut = () => reject(signal.reason as Error)
    signal.addEventListener('abort', cut, { once: true })
    if (signal.aborted) cut()
  })
  try {
    return await Promise.race([aborted, work])
  } finally {
    signal.removeEventListener('abort', cut)
  }
}
