import { api } from '../api/client.js'
import type { ServerMessage } from '../api/types.js'
import { StreamConnection, type ConnectionState } from '../stream/connection.js'
import { Series, type Point } from './series.js'
import { Sightings, type Entry } from './sightings.js'
import { Store } from './store.js'

export type StreamState = Readonly<{ state: ConnectionState; retryAtMs: number | undefined }>

/** Results come by the hundred per second; a person reads a few. */
const showEveryMs = 400
const seedResults = 200

/** Every result of every camera, without pictures: the list and the plots. Resumes after a break. */
export class Results {
  readonly entries = new Store<readonly Entry[]>([])
  readonly points = new Store<readonly Point[]>([])
  readonly stream = new Store<StreamState>({ state: 'connecting', retryAtMs: undefined })
  readonly #sightings = new Sightings()
  readonly #series = new Series()
  readonly #connection: StreamConnection
  #dirty = false
  #timer: ReturnType<typeof setInterval> | undefined

  constructor() {
    const wants = { cameras: ['*'], detections: true, frames: false }
    this.#connection = new StreamConnection(
      {
        state: (state, retryAtMs) => this.stream.set({ state, retryAtMs }),
        message: (message) => this.#receive(message),
      },
      wants,
      true,
    )
  }

  async start(): Promise<void> {
    this.#timer = setInterval(() => this.#show(), showEveryMs)
    // What was found before this page was opened; the live stream follows.
    const past = await api.recent(seedResults).catch(() => [])
    for (const message of past.reverse()) this.#sightings.add(message)
    this.#dirty = true
    this.#show()
    this.#connection.start()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#connection.stop()
  }

  retryNow(): void {
    this.#connection.retryNow()
  }

  forget(cameraId: string): void {
    this.#sightings.forget(cameraId)
  }

  #receive(message: ServerMessage): void {
    if (message.type === 'gap') this.#sightings.gap(Date.now(), message.dropped, message.reason)
    else if (message.type === 'detections') {
      this.#sightings.add(message)
      this.#series.add(Date.now(), message.timingsMs.captureToPublish)
    } else return
    this.#dirty = true
  }

  #show(): void {
    const before = this.#series.points.at(-1)
    this.#series.advance(Date.now())
    if (this.#series.points.at(-1) !== before || this.points.value.length !== this.#series.points.length)
      this.points.set([...this.#series.points])
    if (!this.#dirty) return
    this.#dirty = false
    this.entries.set(this.#sightings.entries)
  }
}
