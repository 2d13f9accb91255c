import { ModelConfigError } from '../../repository/errors.js'

/** Growth below this is not told from that of everything else. */
const leastGrowthBytes = 8 * 1024 ** 2

/** Memory that instances may take which are still to start. */
export type Promised = Readonly<{
  /** One of them is up: what it took is seen. */
  kept(): void
  /** No more of them start. */
  end(): void
}>

/** What the models of this process were promised that load at this moment: what is available is so much less. */
let promisedBytes = 0

/**
 * Looks what the first instance of a model takes, to tell whether there is room for the others.
 *
 * @param takenBytes - what the model has taken so far; by default all of the process, where only one model loads at a time.
 * @returns to be called when the first one is up, to be promised what the others take. @throws ModelConfigError naming how many there is
 *   room for
 */
export function roomForOthers(
  model: string,
  takenBytes = () => process.memoryUsage.rss(),
  availableBytes = () => process.availableMemory(),
): (others: number) => Promised {
  const beforeBytes = takenBytes()
  return (others) => {
    const each = Math.max(leastGrowthBytes, takenBytes() - beforeBytes)
    const available = Math.max(0, availableBytes() - promisedBytes)
    if (others > 0 && each * others > available) {
      const inMiB = (bytes: number) => Math.round(bytes / 1024 ** 2)
      throw new ModelConfigError(
        `instance_group.count: model ${model} has ${others + 1} instances of about ${inMiB(each)} MiB, but only ${inMiB(available)} MiB are available for ${others} more`,
        `Write at most ${Math.floor(available / each) + 1}, or give the service more memory.`,
      )
    }
    return promise(each, others)
  }
}

function promise(each: number, others: number): Promised {
  let left = Math.max(0, others)
  promisedBytes += each * left
  const end = (count: number): void => {
    const ended = Math.min(left, count)
    left -= ended
    promisedBytes -= each * ended
  }
  return { kept: () => end(1), end: () => end(left) }
}
