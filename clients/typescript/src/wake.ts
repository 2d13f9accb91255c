/** As much of a browser as is asked here; elsewhere there is none. */
type EventSource = Readonly<
  Record<'addEventListener' | 'removeEventListener', (type: string, listener: () => void) => void>
>
type Page = Readonly<{ window?: EventSource; document?: EventSource & Readonly<{ hidden: boolean }> }>

/**
 * Calls the listener when the network came or went, or somebody looks again: what was true before may not be now. Only browsers tell.
 *
 * @returns what ends it.
 */
export function onWake(listener: () => void): () => void {
  const { window, document } = globalThis as Page
  if (window === undefined || document === undefined) return () => undefined
  const woken = (): void => {
    if (!document.hidden) listener()
  }
  window.addEventListener('online', woken)
  window.addEventListener('offline', woken)
  document.addEventListener('visibilitychange', woken)
  return () => {
    window.removeEventListener('online', woken)
    window.removeEventListener('offline', woken)
    document.removeEventListener('visibilitychange', woken)
  }
}
