import { median } from '../state/median.js'

/** A picture is old when so many others should have come since, and in no case before so long. */
const [missed, leastMs] = [3, 5_000]
/** Steps between pictures that are remembered, and from how many on they count more than what the service says. */
const [kept, enough] = [5, 3]

/** Pictures a second of a camera as the service tells; `sampleFps` is the most there may be. */
type Told = Readonly<{ inferredFps: number; sampleFps: number }>

/** When the picture that is shown was taken, and when the next one was to be expected. Reads no clock. */
export class PicturePace {
  readonly #stepsMs: number[] = []
  #capturedAtMs: number | undefined
  #arrivedMs = 0
  #paused = false

  /** @param capturedAtMs - wall time of the service. @param arrivedMs - monotonic. */
  shown(capturedAtMs: number, arrivedMs: number): void {
    const stepMs = capturedAtMs - (this.#capturedAtMs ?? capturedAtMs)
    if (stepMs > 0 && !this.#paused) this.#stepsMs.push(stepMs)
    if (this.#stepsMs.length > kept) this.#stepsMs.shift()
    this.#paused = false
    this.#capturedAtMs = capturedAtMs
    this.#arrivedMs = arrivedMs
  }

  /** The next picture comes after a pause of ours. */
  paused(): void {
    this.#paused = true
  }

  /**
   * Age of the picture in ms, if it is an old one; undefined while it is as new as can be, or there is none.
   *
   * @param serviceMs - wall time of the service. @param atMs - monotonic.
   * @param flowing - whether pictures could come at all.
   */
  staleMs(serviceMs: number, atMs: number, flowing: boolean, told: Told): number | undefined {
    if (this.#capturedAtMs === undefined) return undefined
    // A wall clock that was set back leaves captures in the future: then it counts how long it has been here.
    const ageMs = Math.max(serviceMs - this.#capturedAtMs, atMs - this.#arrivedMs)
    const limitMs = flowing ? Math.max(leastMs, missed * this.#expectedMs(told)) : leastMs
    return ageMs > limitMs ? ageMs : undefined
  }

  #expectedMs({ inferredFps, sampleFps }: Told): number {
    if (this.#stepsMs.length >= enough) return median(this.#stepsMs)
    return 1_000 / (inferredFps > 0 ? inferredFps : sampleFps)
  }
}
