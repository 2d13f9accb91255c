import { api, ApiError } from '../api/client.js'
import type { Camera, Status } from '../api/types.js'
import { monotonicMs, serviceClock } from './service-clock.js'
import { Store } from './store.js'

export type ServiceLink = Readonly<{
  /** `locked`: the service wants a token. */
  state: 'loading' | 'up' | 'down' | 'locked'
  /** When the service last answered; monotonic time of this page. */
  lastAnswerMs: number | undefined
}>

const everyMs = 2_000
/** A request that is lost without a word would be waited for for ever. */
const answerWithinMs = 10_000

/** Keeps cameras and status fresh; says whether the service answers. Rests while the tab is hidden. */
export class Poller {
  readonly cameras = new Store<readonly Camera[] | undefined>(undefined)
  readonly status = new Store<Status | undefined>(undefined)
  readonly link = new Store<ServiceLink>({ state: 'loading', lastAnswerMs: undefined })
  #timer: ReturnType<typeof setTimeout> | undefined
  #round = 0

  start(): Promise<void> {
    document.addEventListener('visibilitychange', this.#wake)
    window.addEventListener('online', this.#wake)
    return this.refresh()
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.#wake)
    window.removeEventListener('online', this.#wake)
    clearTimeout(this.#timer)
    this.#round += 1
  }

  /** Asks now; an answer to an earlier question is not used any more. Never rejects. */
  refresh(): Promise<void> {
    clearTimeout(this.#timer)
    this.#round += 1
    return this.#ask(this.#round)
  }

  readonly #wake = (): void => {
    if (!document.hidden) void this.refresh()
  }

  /** Beside what it says, it tells the time of the service before any camera is shown. */
  async #askStatus(signal: AbortSignal): Promise<Status> {
    const askedMs = monotonicMs()
    const status = await api.status(signal)
    serviceClock.read(status.nowMs, askedMs)
    return status
  }

  async #ask(round: number): Promise<void> {
    try {
      const signal = AbortSignal.timeout(answerWithinMs)
      const [cameras, status] = await Promise.all([api.cameras(signal), this.#askStatus(signal)])
      if (round !== this.#round) return
      this.cameras.set([...cameras].sort((a, b) => a.id.localeCompare(b.id, undefined, { numeric: true })))
      this.status.set(status)
      this.link.set({ state: 'up', lastAnswerMs: monotonicMs() })
    } catch (error) {
      if (round !== this.#round) return
      const locked = error instanceof ApiError && error.problem.status === 401
      this.link.update(({ lastAnswerMs }) => ({ state: locked ? 'locked' : 'down', lastAnswerMs }))
      // Without the token nothing will change by asking again.
      if (locked) return
    }
    if (!document.hidden) this.#timer = setTimeout(() => void this.refresh(), everyMs)
  }
}
