import { api } from '../api/client.js'
import type { Coverage } from '../api/types.js'
import { Store } from './store.js'

/** It changes slowly, and is a sum over an hour of every camera. */
const everyMs = 5_000
const answerWithinMs = 10_000

export type CameraCoverage = Pick<Coverage['items'][number], 'watchedSeconds' | 'blindSeconds' | 'last'>

/** How much of the last hour each camera was watched, and whether it is now. Rests while the tab is hidden. */
export class SiteCoverage {
  /** By camera; `undefined` while it is not known, as without an answer. */
  readonly cameras = new Store<ReadonlyMap<string, CameraCoverage> | undefined>(undefined)
  #timer: ReturnType<typeof setTimeout> | undefined
  #round = 0

  start(): void {
    document.addEventListener('visibilitychange', this.#wake)
    void this.refresh()
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.#wake)
    clearTimeout(this.#timer)
    this.#round += 1
  }

  /** Asks now; an answer to an earlier question is not used any more. Never rejects. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer)
    this.#round += 1
    const round = this.#round
    const cameras = await this.#ask().catch(() => undefined)
    if (round !== this.#round) return
    this.cameras.set(cameras)
    if (!document.hidden) this.#timer = setTimeout(() => void this.refresh(), everyMs)
  }

  readonly #wake = (): void => {
    if (!document.hidden) void this.refresh()
  }

  async #ask(): Promise<ReadonlyMap<string, CameraCoverage>> {
    // Without times it is the last hour by the clock of the service.
    const { items } = await api.coverage('spans=0', AbortSignal.timeout(answerWithinMs))
    return new Map(items.map((item) => [item.cameraId, item]))
  }
}

/** Share of the time of these cameras that was watched, 0-1; undefined where nothing is known of any. */
export function watchedShare(
  cameras: ReadonlyMap<string, CameraCoverage> | undefined,
  ids: readonly string[],
): number | undefined {
  const own = ids.flatMap((id) => cameras?.get(id) ?? [])
  const watched = own.reduce((sum, { watchedSeconds }) => sum + watchedSeconds, 0)
  const whole = own.reduce((sum, { blindSeconds }) => sum + blindSeconds, watched)
  return whole > 0 ? watched / whole : undefined
}
