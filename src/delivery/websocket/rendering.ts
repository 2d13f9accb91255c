import { detectionsJson } from '../../messages/detections-json.js'
import type { DetectionsMessage } from '../../messages/detections-message.js'
import { serverFrame } from './server-frame.js'
import { keptPositions, type MessageFilter } from './message-filter.js'

/** A `detections` message of the stream, ready for the wire. */
export function renderEnvelope(cursor: string, messageJson: string): Buffer {
  return serverFrame('text', Buffer.from(`{"type":"detections","cursor":"${cursor}",${messageJson.slice(1)}`))
}

/**
 * One message in every form its readers ask for, each made once: clients whose filters keep the same detections share one
 * Buffer, and those who keep all of them share `whole`.
 *
 * A message without a kept detection is sent all the same, with an empty list: it says that nothing is there any more.
 */
export class Rendering {
  readonly #byFilter = new Map<string, Buffer>()
  readonly #byKept = new Map<string, Buffer>()
  readonly whole: Buffer

  constructor(
    readonly cursor: string,
    readonly message: DetectionsMessage,
  ) {
    this.whole = renderEnvelope(cursor, detectionsJson(message))
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
    const rendered = renderEnvelope(this.cursor, JSON.stringify(part))
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
