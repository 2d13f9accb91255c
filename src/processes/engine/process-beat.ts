import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Each look at the loop wakes the process: every 10 ms cost an idle one 0.5 % of a core. */
const resolutionMs = 100

/** Resident memory, CPU time and loop delay of this process since the last reading. */
export class ProcessBeat {
  readonly #loop = monitorEventLoopDelay({ resolution: resolutionMs })

  #rssBytes = 0

  constructor() {
    this.#loop.enable()
  }

  /** `loopP99Ms` is the p99 of the time a timer was late since the last reading. */
  read(): { rssBytes: number; cpuSeconds: number; loopP99Ms: number } {
    const cpu = process.cpuUsage()
    this.#rssBytes = residentBytes() ?? this.#rssBytes
    const loopP99Ms = Math.max(0, this.#loop.percentile(99) / 1e6 - resolutionMs)
    this.#loop.reset()
    return {
      rssBytes: this.#rssBytes,
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
      loopP99Ms: Number.isFinite(loopP99Ms) ? loopP99Ms : 0,
    }
  }

  stop(): void {
    this.#loop.disable()
  }
}

/** undefined where it cannot be read: it takes a descriptor, and there may be none. */
function residentBytes(): number | undefined {
  try {
    return process.memoryUsage.rss()
  } catch {
    return undefined
  }
}
