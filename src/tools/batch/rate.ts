/** How far a run is, as it is told. */
export type BatchProgress = Readonly<{
  /** Of the run as a whole, parts of it that were cut included. */
  pictures: number
  detections: number
  errors: number
  filesDone: number
  files: number
  /** Of the last seconds; 0 before there was one. */
  picturesPerSecond: number
  /** Until the end, at the pace of this part of the run; undefined while that is not known. */
  secondsLeft: number | undefined
}>

/** What the last seconds are. */
const windowMs = 10_000

/** Pace and time left, of how much was done when. */
export class Rate {
  readonly #marks: { atMs: number; pictures: number }[] = []
  readonly #began: Readonly<{ atMs: number; share: number }>

  /** @param share - of the files that were done before, 0..1. */
  constructor(nowMs: number, pictures: number, share: number) {
    this.#began = { atMs: nowMs, share }
    this.#marks.push({ atMs: nowMs, pictures })
  }

  /** @param share - of the files that are done now, parts of videos included, 0..1. */
  at(
    nowMs: number,
    pictures: number,
    share: number,
  ): Pick<BatchProgress, 'picturesPerSecond' | 'secondsLeft'> {
    this.#marks.push({ atMs: nowMs, pictures })
    while (this.#marks.length > 2 && nowMs - this.#marks[1]!.atMs >= windowMs) this.#marks.shift()
    const [first] = this.#marks
    const seconds = (nowMs - first!.atMs) / 1e3
    const done = share - this.#began.share
    const elapsed = (nowMs - this.#began.atMs) / 1e3
    return {
      picturesPerSecond: seconds > 0 ? (pictures - first!.pictures) / seconds : 0,
      secondsLeft: done > 0 ? (elapsed * (1 - share)) / done : undefined,
    }
  }
}
