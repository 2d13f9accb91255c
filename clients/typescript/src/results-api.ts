import { baseOf, tokenOf, type Address } from './address.js'
import { refusal, unreachable } from './client-error.js'
import type { Result } from './messages.js'

/** What of a camera most programs want; the service tells more (`/openapi.json`). */
export type Camera = Readonly<{
  id: string
  status: Readonly<{ state: string }>
  stats: Readonly<{ inferredFps: number }>
}>

/** Results of the past, as far as the service keeps them. */
export type PastQuery = Readonly<{
  camera?: string | undefined
  /** Only results in which this label was found. */
  label?: string | undefined
  from?: Date | string | undefined
  to?: Date | string | undefined
  /** Results of one request, 1 to 1,000. */
  pageSize?: number | undefined
  /** Called where nodes of a cluster are missing in what follows, each with the reason: they may have results of that time, too. */
  onIncomplete?: ((nodes: readonly string[]) => void) | undefined
}>

type ResultsPage = Readonly<{ items: readonly Result[]; nextCursor?: string; incomplete?: readonly string[] }>

/** As much of `fetch` as is needed: one of your own may trust other certificates, for instance. It gets a `signal` as well, as `fetch` does. */
export type Fetch = (
  url: string,
  init: Readonly<{ headers: Record<string, string> }>,
) => Promise<
  Readonly<{
    status: number
    headers: Readonly<{ get(name: string): string | null }>
    text(): Promise<string>
  }>
>

/** An answer that takes longer is given up. */
const answersWithinMs = 30_000

/** What is asked by HTTP beside the live stream. Every method throws `GantryClientError`. */
export class GantryApi {
  readonly #base: string

  constructor(
    readonly address: Address,
    readonly settings: Readonly<{ fetch?: Fetch | undefined }> = {},
  ) {
    this.#base = baseOf(address)
  }

  async cameras(): Promise<readonly Camera[]> {
    return (await this.#get<{ items: Camera[] }>('api/v1/cameras')).items
  }

  /** The last result of a camera. */
  latest(cameraId: string): Promise<Result> {
    return this.#get<Result>(`api/v1/cameras/${encodeURIComponent(cameraId)}/latest`)
  }

  /** Results, newest first. The next page is asked for when it is read. */
  async *results({ camera, label, from, to, pageSize, onIncomplete }: PastQuery = {}): AsyncGenerator<
    Result,
    void,
    undefined
  > {
    const asked = { camera, label, from: timeText(from), to: timeText(to), limit: pageSize?.toString() }
    let cursor: string | undefined
    do {
      const query = new URLSearchParams()
      for (const [name, value] of Object.entries({ ...asked, cursor }))
        if (value !== undefined) query.set(name, value)
      const page = await this.#get<ResultsPage>(`api/v1/detections?${query}`)
      if (page.incomplete !== undefined) onIncomplete?.(page.incomplete)
      yield* page.items
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }

  async #get<T>(path: string): Promise<T> {
    const token = tokenOf(this.address)
    const ask = this.settings.fetch ?? fetch
    // The signal is in no type of the package: programs without those of a browser or Node compile with it.
    const init = {
      signal: AbortSignal.timeout(answersWithinMs),
      headers: {
        accept: 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
    }
    const { status, headers, body } = await ask(new URL(path, this.#base).href, init)
      .then(async (response) => ({
        status: response.status,
        headers: response.headers,
        body: await response.text(),
      }))
      .catch((cause: unknown) => {
        throw unreachable(this.#base, cause)
      })
    const answer = status === 200 ? jsonOf<T>(body) : undefined
    if (answer !== undefined) return answer
    throw refusal(this.#base, { status, retryAfter: headers.get('retry-after'), body })
  }
}

function timeText(time: Date | string | undefined): string | undefined {
  return time instanceof Date ? time.toISOString() : time
}

function jsonOf<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T
  } catch {
    return undefined
  }
}
