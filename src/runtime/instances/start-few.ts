/**
 * More at once would be up no sooner, and the loop would create so many threads before it comes to anything else: 64 at once held it for a
 * second, two at a time for 30 ms. It is one loop for all models of a process.
 */
const startsAtATime = 2

let underWay = 0
const waiting: (() => void)[] = []

/**
 * Starts instances one after another, a few at a time, all models of the process together.
 *
 * @throws what the first throws that fails, once all that began have settled; no more are begun then.
 */
export async function startFew<T>(all: readonly T[], start: (each: T) => Promise<unknown>): Promise<void> {
  const left = [...all]
  let failed = false
  const next = async (): Promise<void> => {
    const each = left.shift()
    if (each !== undefined && !failed) await start(each)
  }
  const lanes = Array.from({ length: startsAtATime }, async () => {
    while (left.length > 0 && !failed)
      try {
        await inTurn(next)
      } catch (error) {
        failed = true
        throw error
      }
  })
  const failure = (await Promise.allSettled(lanes)).find((lane) => lane.status === 'rejected')
  if (failure !== undefined) throw failure.reason
}

async function inTurn(start: () => Promise<void>): Promise<void> {
  // Whoever ends hands its turn on.
  if (underWay === startsAtATime) await new Promise<void>((resolve) => waiting.push(resolve))
  else underWay += 1
  try {
    await start()
  } finally {
    const next = waiting.shift()
    if (next === undefined) underWay -= 1
    else next()
  }
}
