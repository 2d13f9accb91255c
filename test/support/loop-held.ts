import { readFileSync } from 'node:fs'

const resolutionMs = 5

/**
 * The most processor time in ms that this thread took between two timers of 5 ms while the work went on: what its loop was held up by,
 * whatever else the machine did.
 */
export async function mostHeldMs<T>(
  work: () => Promise<T>,
): Promise<Readonly<{ result: T; heldMs: number }>> {
  let lastMs = ranMs()
  let heldMs = 0
  const look = (): void => {
    const nowMs = ranMs()
    heldMs = Math.max(heldMs, nowMs - lastMs)
    lastMs = nowMs
  }
  const timer = setInterval(look, resolutionMs)
  try {
    const result = await work()
    look()
    return { result, heldMs }
  } finally {
    clearInterval(timer)
  }
}

function ranMs(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
}
