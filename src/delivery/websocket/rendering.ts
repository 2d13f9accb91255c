import { parseDetectionsJson } from '../../messages/detections-json.js'
import type { DetectionsMessage } from '../../messages/detections-message.js'
import { serverFrame } from './server-frame.js'
import { keptPositions, type MessageFilter } from '../message-filter.js'

/** A `detections` message of the stream, ready for the wire. @param json - text of the message, UTF-8. */
function renderEnvelope(cursor: string, json: Uint8Array): Buffer {
  // In place of the brace that the message begins with.
  return serverFrame('text', Buffer.from(`{"type":"detections","cursor":"${cursor}",`), json.subarray(1))
}

/**
 * One message in every form its readers ask for, each made once: clients whose filters keep the same detections share one
 * Buffer, and those who keep all of them share `whole`. The text is read only for a filter.
 *
 * A message without a kept detection is sent all the same, with an empty list: it says that nothing is there any more.
 */
export class Rendering {
  readonly #byFilter = new Map<string, Buffer>()
  readonly #byKept = new Map<string, Buffer>()
  readonly whole: Buffer
  #message: DetectionsMessage | undefined

  /** @param json - text of the message, UTF-8; it must stand as long as this. */
  constructor(
    readonly cursor: string,
    readonly json: Buffer,
  ) {
    this.whole = renderEnvelope(cursor, json)
  }

  get message(): DetectionsMessage {
    return (this.#message ??= parseDetectionsJson(this.json.toString()))
  }

  for(filter: MessageFilter): Buffer {
    if (filter.key === '') return this.whole
    const known = this.#byFilter.get(filter.key)
    if (known !== undefined) return known
    const rendered = this.#render(keptPositions(filter, this.message.detections))
    this.#byFilter.set(filter.key, rendered)
    return rendered
  }

  #render(kept: readonly number[]): Buffer {
    const { detections } = this.message
    if (kept.length === detections.length) return this.whole
    const key = kept.join(',')
    const known = this.#byKept.get(key)
    if (known !== undefined) return known
    const wanted = new Set(kept)
    const part = { ...this.message, detections: detections.filter((_, position) => wanted.has(position)) }
    const rendered = renderEnvelope(this.cursor, Buffer.from(JSON.stringify(part)))
    this.#byKept.set(key, rendered)
    return rendered
  }
}

/** One message on its way to everybody. */
export type BroadcastJob = Readonly<{
  position: number
  cameraId: string
  rendering: Rendering
  /** Picture of the same frame, ready for the wire. */
  picture: Buffer | undefined
  /** Monotonic time of publishing. */
  atMs: number
}>
