import type { SinkFilterConfig } from '../config/sink-filter.js'
import { eventTypes } from '../messages/cloud-event.js'
import { labelInJson, messageOfJson } from '../messages/detections-json.js'
import type { DetectionsMessage } from '../messages/detections-message.js'
import { filterOf, keptPositions } from './message-filter.js'
import type { OutgoingRecord } from './record-queue.js'

/** What becomes of a result on its way to a sink. */
export type FilterVerdict =
  | Readonly<{ kind: 'send'; value: Buffer }>
  /** Of another camera, or without any detection that is wanted. */
  | Readonly<{ kind: 'filtered' }>
  /** One more of its camera than go in a minute. */
  | Readonly<{ kind: 'over_limit' }>

const minuteMs = 60_000
/** Cameras that are remembered; who adds and removes them for ever must not fill the memory. */
const maxCameras = 4_096

/** Which results a sink gets, and what of them. The text of a result is read only for labels and scores, once for all sinks. */
export class RecordFilter {
  readonly #cameras: ReadonlySet<string>
  readonly #labels: readonly string[]
  readonly #wanted: ReturnType<typeof filterOf>
  readonly #maxPerMinute: number | undefined
  readonly #sentMs = new Map<string, number[]>()

  constructor({ cameras, labels, minScore, maxPerMinute }: SinkFilterConfig) {
    this.#cameras = new Set(cameras.includes('*') ? [] : cameras)
    this.#labels = labels.map(labelInJson)
    this.#wanted = filterOf({ labels, minScore })
    this.#maxPerMinute = maxPerMinute
  }

  /** Whether a camera is one of those that the sink is for. A gap of unknown cameras (`*`) may be of them. */
  hasCamera(cameraId: string): boolean {
    return this.#cameras.size === 0 || this.#cameras.has(cameraId) || cameraId === '*'
  }

  /** The detections of a message that are wanted. */
  wantedOf({ detections }: DetectionsMessage): DetectionsMessage['detections'] {
    return keptPositions(this.#wanted, detections).flatMap((position) => detections[position] ?? [])
  }

  /** Whether it is left out however few go: of another camera, or without any detection that is wanted. */
  isUnwanted(record: OutgoingRecord): boolean {
    return !this.hasCamera(record.cameraId) || this.#kept(record) === undefined
  }

  /** Asked once for each record, in their order. The minute is that of the capture, so that an outage changes nothing of it. */
  judge(record: OutgoingRecord): FilterVerdict {
    if (!this.hasCamera(record.cameraId)) return { kind: 'filtered' }
    const value = this.#kept(record)
    if (value === undefined) return { kind: 'filtered' }
    if (record.type !== eventTypes.detections) return { kind: 'send', value }
    const hasRoom = this.#hasRoom(record.cameraId, Date.parse(record.time))
    return hasRoom ? { kind: 'send', value } : { kind: 'over_limit' }
  }

  /** The text with the wanted detections alone; undefined where there is none. Events have none, and go. */
  #kept({ type, value }: OutgoingRecord): Buffer | undefined {
    if (this.#wanted.key === '' || type !== eventTypes.detections) return value
    if (this.#labels.length > 0 && !this.#labels.some((label) => value.includes(label))) return undefined
    const message = messageOfJson(value)
    const detections = this.wantedOf(message)
    if (detections.length === 0) return undefined
    if (detections.length === message.detections.length) return value
    return Buffer.from(JSON.stringify({ ...message, detections }))
  }

  #hasRoom(cameraId: string, atMs: number): boolean {
    const most = this.#maxPerMinute
    if (most === undefined) return true
    const sent = (this.#sentMs.get(cameraId) ?? []).filter((sentMs) => atMs - sentMs < minuteMs)
    const hasRoom = sent.length < most
    if (hasRoom) sent.push(atMs)
    this.#remember(cameraId, sent)
    return hasRoom
  }

  #remember(cameraId: string, sent: number[]): void {
    this.#sentMs.delete(cameraId)
    this.#sentMs.set(cameraId, sent)
    const [oldest] = this.#sentMs.keys()
    if (this.#sentMs.size > maxCameras && oldest !== undefined) this.#sentMs.delete(oldest)
  }
}
