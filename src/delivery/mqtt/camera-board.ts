import { eventTypes } from '../../messages/cloud-event.js'
import { messageOfJson } from '../../messages/detections-json.js'
import type { CameraState } from '../../vision/camera-state.js'
import type { RecordFilter } from '../record-filter.js'
import type { OutgoingRecord } from '../record-queue.js'
import { cameraDiscovery, type DiscoverySettings, serviceDiscovery } from './home-assistant.js'
import type { RetainedTopics } from './retained-topics.js'

/** A camera of the service, as its state topic tells of it. */
export type BoardCamera = Readonly<{ id: string; state: CameraState; reason: string }>

type Entry = {
  labels: Set<string>
  topics: Set<string>
  latest: Buffer | undefined
  counts: Record<string, number>
}

/** Keeps the state topics of cameras, and what Home Assistant is told of them. Texts of results are read only when it looks. */
export class CameraBoard {
  readonly #entries = new Map<string, Entry>()

  /** @param discovery - undefined where Home Assistant is not told. */
  constructor(
    readonly retained: RetainedTopics,
    readonly filter: RecordFilter,
    readonly settings: DiscoverySettings,
    readonly discovers: boolean,
  ) {
    if (discovers) retained.set(...serviceDiscovery(settings))
  }

  /** Costs a look into a map. */
  saw({ type, cameraId, value }: OutgoingRecord): void {
    if (type === eventTypes.detections && this.filter.hasCamera(cameraId))
      this.#entryOf(cameraId).latest = value
  }

  /** Writes what has changed since the last look. */
  look(cameras: readonly BoardCamera[]): void {
    const here = cameras.filter(({ id }) => this.filter.hasCamera(id))
    const ids = new Set(here.map(({ id }) => id))
    for (const [id, { topics }] of this.#entries) {
      if (ids.has(id)) continue
      for (const topic of topics) this.retained.remove(topic)
      this.#entries.delete(id)
    }
    for (const camera of here) this.#write(camera, this.#entryOf(camera.id))
  }

  #write({ id, state, reason }: BoardCamera, entry: Entry): void {
    if (entry.latest !== undefined) {
      entry.counts = this.#count(entry.latest)
      for (const label of Object.keys(entry.counts)) entry.labels.add(label)
      entry.latest = undefined
    }
    // What a camera saw last says nothing of now once it is not live.
    const counts = state === 'live' ? entry.counts : {}
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
    this.#put(entry, this.settings.topics.stateOf(id), JSON.stringify({ state, reason, counts, total }))
    if (!this.discovers) return
    for (const [topic, payload] of cameraDiscovery(id, [...entry.labels], this.settings))
      this.#put(entry, topic, payload)
  }

  #put({ topics }: Entry, topic: string, payload: string): void {
    topics.add(topic)
    this.retained.set(topic, payload)
  }

  #count(value: Buffer): Record<string, number> {
    const counts = new Map<string, number>()
    for (const { label } of this.filter.wantedOf(messageOfJson(value)))
      counts.set(label, (counts.get(label) ?? 0) + 1)
    return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  #entryOf(cameraId: string): Entry {
    const known = this.#entries.get(cameraId)
    if (known !== undefined) return known
    const entry: Entry = { labels: new Set(), topics: new Set(), latest: undefined, counts: {} }
    this.#entries.set(cameraId, entry)
    return entry
  }
}
