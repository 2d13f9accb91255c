import { api, ApiError } from '../api/client.js'
import type { ModelList } from '../api/types.js'
import type { Sample } from './model-rates.js'
import { Store } from './store.js'

export type ModelsState = Readonly<{
  /** As the service has it now; `undefined` before the first answer. */
  list: ModelList | undefined
  /** The newest with models of the model server, for while that is away. */
  known: ModelList | undefined
  /** Of the last seconds, oldest first: rates are taken between the first and the last. */
  samples: readonly Sample[]
  /** Why there is no answer; empty while there is one. */
  failure: string
}>

const everyMs = 2_000
const samplesKept = 6

/** Keeps the models fresh while their page is shown. Rests while the tab is hidden. */
export class Models {
  readonly state = new Store<ModelsState>({ list: undefined, known: undefined, samples: [], failure: '' })
  #isWatched = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #round = 0

  get isWatched(): boolean {
    return this.#isWatched
  }

  /** Until the returned function is called. */
  watch(): () => void {
    this.#isWatched = true
    const wake = (): void => {
      if (!document.hidden) void this.refresh()
    }
    document.addEventListener('visibilitychange', wake)
    void this.refresh()
    return () => {
      document.removeEventListener('visibilitychange', wake)
      clearTimeout(this.#timer)
      this.#round += 1
      this.#isWatched = false
    }
  }

  /** Asks now; an answer to an earlier question is not used any more. Never rejects. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer)
    this.#round += 1
    const round = this.#round
    try {
      const list = await api.models()
      if (round !== this.#round) return
      this.state.update(({ known, samples }) => ({
        list,
        known: list.server.isTold ? list : known,
        samples: [...samples, { atMs: performance.now(), list }].slice(-samplesKept),
        failure: '',
      }))
    } catch (error) {
      if (round !== this.#round) return
      const failure = error instanceof Error ? error.message : 'That did not work.'
      this.state.update((state) => ({ ...state, failure }))
      // The window that asks for the token begins again.
      if (error instanceof ApiError && error.problem.status === 401) return
    }
    if (this.#isWatched && !document.hidden) this.#timer = setTimeout(() => void this.refresh(), everyMs)
  }
}
