import { cpus, freemem, totalmem } from 'node:os'

/** Processors and memory of the machine. */
export class CpuUsage {
  #last = processorTimes()
  #utilization = 0

  /** Since the call before, 0-1. */
  utilization(): number {
    const now = processorTimes()
    // Nothing is told where there is no descriptor to read it with.
    if (now.total === 0) return this.#utilization
    const total = now.total - this.#last.total
    if (total > 0) this.#utilization = (now.busy - this.#last.busy) / total
    this.#last = now
    return this.#utilization
  }

  memoryTotalBytes(): number {
    return totalmem()
  }

  memoryUsedBytes(): number {
    return totalmem() - freemem()
  }
}

function processorTimes(): Readonly<{ busy: number; total: number }> {
  let busy = 0
  let idle = 0
  for (const { times } of cpus()) {
    busy += times.user + times.nice + times.sys + times.irq
    idle += times.idle
  }
  return { busy, total: busy + idle }
}
