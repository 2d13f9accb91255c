import { ModelConfigError } from '../../inference/errors.js'

/** Growth below this is not told from that of everything else. */
const leastGrowthBytes = 8 * 1024 ** 2

/**
 * Looks what the first instance of a model takes, to tell whether there is room for the others.
 *
 * @returns to be called when the first one is up. @throws ModelConfigError naming how many there is room for
 */
export function enoughMemory(
  model: string,
  residentBytes = () => process.memoryUsage.rss(),
  availableBytes = () => process.availableMemory(),
): (others: number) => void {
  const beforeBytes = residentBytes()
  return (others) => {
    if (others <= 0) return
    const each = Math.max(leastGrowthBytes, residentBytes() - beforeBytes)
    const available = availableBytes()
    if (each * others <= available) return
    const inMiB = (bytes: number) => Math.round(bytes / 1024 ** 2)
    throw new ModelConfigError(
      `instance_group.count: model ${model} has ${others + 1} instances of about ${inMiB(each)} MiB, but only ${inMiB(available)} MiB are available for ${others} more`,
      `Write at most ${Math.floor(available / each) + 1}, or give the service more memory.`,
    )
  }
}
