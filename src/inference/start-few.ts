/**
 * More at once would be up no sooner, and the loop would create so many threads before it comes to anything else: 64 at once held it for a
 * second, two at a time for 30 ms.
 */
const startsAtATime = 2

/** Starts instances one after another, a few at a time. @throws what the first throws that fails, once all that began have settled; no more are begun then. */
export async function startFew<T>(all: readonly T[], start: (each: T) => Promise<unknown>): Promise<void> {
  const left = [...all]
  let failed = false
  const lanes = Array.from({ length: startsAtATime }, async () => {
    for (let next = left.shift(); next !== undefined && !failed; next = left.shift())
      try {
        await start(next)
      } catch (error) {
        failed = true
        throw error
      }
  })
  const failure = (await Promise.allSettled(lanes)).find((lane) => lane.status === 'rejected')
  if (failure !== undefined) throw failure.reason
}
