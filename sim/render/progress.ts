import { Presets, SingleBar } from 'cli-progress'

export interface ProgressLine {
  readonly update: (this: void, done: number, total: number) => void
  readonly end: (this: void) => void
}

/** A progress bar on stderr where that is a terminal, nothing elsewhere. */
export function progressLine(what: string): ProgressLine {
  if (!process.stderr.isTTY) return { update: () => undefined, end: () => undefined }
  const bar = new SingleBar(
    { format: `${what} [{bar}] {value}/{total} frames, {eta_formatted} left`, stream: process.stderr },
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
