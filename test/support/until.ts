import { setTimeout as pause } from 'node:timers/promises'

/** What was waited for cannot come any more. */
export class Hopeless extends Error {}

/**
 * Asks again until the answer is truthy, and gives it back.
 *
 * @throws after `withinMs`, naming `what` was waited for and the last error; {@link Hopeless} at once.
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  withinMs = 10_000,
  everyMs = 25,
): Promise<NonNullable<T>> {
  const endMs = performance.now() + withinMs
  let lastError: unknown
  for (;;) {
    try {
      const answer = await ask()
      if (answer) return answer
    } catch (error) {
      if (error instanceof Hopeless) throw error
      lastError = error
    }
    if (performance.now() > endMs) {
      throw new Error(`${what}: not within ${withinMs} ms`, { cause: lastError })
    }
    await pause(everyMs)
  }
}
