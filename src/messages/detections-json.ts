import type { DetectionsMessage } from './detections-message.js'
import { traceparentLength } from './traceparent.js'

/** A message on its way out: its text, made once for all who get it, and what is asked of it without reading that. */
export type DetectionsText = Readonly<{
  cameraId: string
  seq: number
  /** `capturedAt` in milliseconds since the epoch. */
  capturedAtMs: number
  /** JSON of the {@link DetectionsMessage}, UTF-8. Nobody changes it. */
  json: Buffer
}>

/** A message that is not published yet. `timingsMs` is its last field, and `traceparent` comes where it is published. */
export type OpenDetections = Omit<DetectionsMessage, 'timingsMs' | 'traceparent'> &
  Readonly<{ timingsMs: Omit<DetectionsMessage['timingsMs'], 'captureToPublish'> }>

/** What is left to be written: the ends of `timingsMs` and of the message. */
const ends = '}}'

/** Text of a message but for `captureToPublish`, its last field, which is known only where it is published. */
export function openDetectionsJson(message: OpenDetections): string {
  return JSON.stringify(message).slice(0, -ends.length)
}

const traceField = ',"traceparent":"'
const traceEnds = '"}'

/** What is known of a message only where it is published. */
export type LateFields = Readonly<{
  /** Of the camera, where several nodes share cameras. */
  owner?: DetectionsMessage['owner']
  /** Of the frame, where it is traced. */
  traceparent?: string | undefined
}>

/** @param open - UTF-8 of what {@link openDetectionsJson} made; it is copied. */
export function closedDetectionsJson(
  open: Uint8Array,
  captureToPublishMs: number,
  { owner, traceparent }: LateFields = {},
): Buffer {
  const timings = `,"captureToPublish":${captureToPublishMs}}`
  const whose = owner === undefined ? '' : `,"owner":${JSON.stringify(owner)}`
  const end = timings + whose + (traceparent === undefined ? '}' : traceField + traceparent + traceEnds)
  const json = Buffer.allocUnsafe(open.length + end.length)
  json.set(open)
  json.write(end, open.length, 'latin1')
  return json
}

/** What {@link closedDetectionsJson} was given: it is the last field of a message, which is not read for it. */
export function traceparentInJson(json: Buffer): string | undefined {
  const to = json.length - traceEnds.length
  const from = to - traceparentLength
  // Without one it ends in two braces.
  if (from < traceField.length || json[to] !== traceEnds.charCodeAt(0)) return undefined
  const isThere = json.toString('latin1', from - traceField.length, from) === traceField
  return isThere ? json.toString('latin1', from, to) : undefined
}

/** Back from the text of a message; no other is expected, and nothing is checked. */
export function parseDetectionsJson(json: string): DetectionsMessage {
  return JSON.parse(json) as DetectionsMessage
}

const read = new WeakMap<Buffer, DetectionsMessage>()

/** The message of a text, read once however many ask for it. Nobody changes it. @param json - text of a message, UTF-8 */
export function messageOfJson(json: Buffer): DetectionsMessage {
  const known = read.get(json)
  if (known !== undefined) return known
  const message = parseDetectionsJson(json.toString())
  read.set(json, message)
  return message
}

/** The same of a text that somebody else may have written; undefined where it is no message of ours. */
export function readDetectionsJson(json: string): DetectionsMessage | undefined {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { cameraId, seq, capturedAt, frame, model, detections, timingsMs } =
    value as Partial<DetectionsMessage>
  const isWhole =
    typeof cameraId === 'string' &&
    typeof seq === 'number' &&
    typeof capturedAt === 'string' &&
    Array.isArray(detections) &&
    [frame, model, timingsMs].every((section) => typeof section === 'object')
  return isWhole ? (value as DetectionsMessage) : undefined
}

/** What the JSON of a message contains exactly if one of its detections has the label: text of its own cannot hold the quotes. */
export function labelInJson(label: string): string {
  return `"label":${JSON.stringify(label)}`
}
