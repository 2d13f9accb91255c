import { api } from '../api/client.js'
import type { DetectionsMessage } from '../api/types.js'
import type { StreamConnection, StreamListener, StreamState } from '../../../clients/typescript/src/index.js'
import { liveStream } from '../stream/live-stream.js'
import { Series, type Point } from './series.js'
import { serviceClock } from './service-clock.js'
import { Sightings, type Entry } from './sightings.js'
import { Store } from './store.js'

/** Results come by the hundred per second; a person reads a few. */
const showEveryMs = 400
const seedResults = 200
/** The live list does not wait longer for what was found before. */
const seedWithinMs = 5_000

/** Every result of every camera, without pictures: the list and the plots. Resumes after a break. */
export class Results {
  readonly entries = new Store<readonly Entry[]>([])
  readonly points = new Store<readonly Point[]>([])
  readonly stream = new Store<StreamState>({ state: 'connecting' })
  readonly #sightings = new Sightings()
  readonly #series = new Series()
  readonly #connection: StreamConnection
  /** What came live while the past was asked for. */
  #early: DetectionsMessage[] | undefined = []
  #dirty = false
  #timer: ReturnType<typeof setInterval> | undefined

  constructor() {
    const wants = { cameras: ['*'], detections: true, frames: false }
    this.#connection = liveStream(
      {
        state: (state) => this.#streamIs(state),
        message: (message) => this.#receive(message),
      },
      wants,
      true,
    )
  }

  async start(): Promise<void> {
    this.#timer = setInterval(() => this.#show(), showEveryMs)
    this.#connection.start()
    // What was found before this page was opened. A service whose requests hang must not keep the stream waiting.
    const past = await api.recent(seedResults, AbortSignal.timeout(seedWithinMs)).catch(() => [])
    this.#seed([...past].reverse())
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

  #seed(past: readonly DetectionsMessage[]): void {
    const keyOf = ({ cameraId, seq, capturedAt }: DetectionsMessage): string =>
      JSON.stringify([cameraId, seq, capturedAt])
    const known = new Set(past.map(keyOf))
    for (const message of past) this.#sightings.add(message)
    for (const message of this.#early ?? []) if (!known.has(keyOf(message))) this.#sightings.add(message)
    this.#early = undefined
    this.#dirty = true
    this.#show()
  }

  #streamIs(state: StreamState): void {
    if (state.state === 'open') this.#series.opened(serviceClock.now())
    else if (this.stream.value.state === 'open') this.#series.broke(serviceClock.now())
    this.stream.set(state)
  }

  #receive(message: Parameters<StreamListener['message']>[0]): void {
    if (message.type === 'gap') {
      this.#sightings.gap(serviceClock.now(), message.dropped, message.reason)
      if (message.reason === 'resume_expired') this.#series.missed()
    } else if (message.type === 'detections') {
      if (this.#early) this.#early.push(message)
      else this.#sightings.add(message)
      this.#series.add(Date.parse(message.capturedAt), message.timingsMs.captureToPublish)
    } else return
    this.#dirty = true
  }

  #show(): void {
    const points = this.#series.points(serviceClock.now())
    if (points !== this.points.value) this.points.set(points)
    if (!this.#dirty) return
    this.#dirty = false
    this.entries.set(this.#sightings.entries)
  }
}
