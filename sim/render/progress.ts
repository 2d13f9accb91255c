import { Presets, SingleBar } from 'cli-progress'

export interface ProgressLine {
  readonly update: (this: void, done: number, total: number) => void
  readonly end: (this: void) => void
}

/** On stderr: a progress bar where that is a terminal, elsewhere a line each half minute. */
export function progressLine(what: string): ProgressLine {
  const bar = new SingleBar(
    {
      format: `${what} [{bar}] {value}/{total} frames, {eta_formatted} left`,
      stream: process.stderr,
      noTTYOutput: true,
      notTTYSchedule: 30_000,
    },
    Presets.legacy,
  )
  let started = false
  return {
    update: (done, total) => {
      if (!started) bar.start(total, 0)
      started = true
      bar.update(done)
    },
    end: () => {
      if (started) bar.stop()
    },
  }
}
