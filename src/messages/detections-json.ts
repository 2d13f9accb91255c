import type { DetectionsMessage } from './detections-message.js'

const memo = new WeakMap<DetectionsMessage, string>()

/**
 * The message as JSON. Kafka, WebSocket and the cache send the very same text, so it is made once per message object.
 * The message must not change afterwards.
 */
export function detectionsJson(message: DetectionsMessage): string {
  const known = memo.get(message)
  if (known !== undefined) return known
  const json = JSON.stringify(message)
  memo.set(message, json)
  return json
}

/** Back from the text that {@link detectionsJson} made; no other is expected, and nothing is checked. */
export function parseDetectionsJson(json: string): DetectionsMessage {
  const message = JSON.parse(json) as DetectionsMessage
  memo.set(message, json)
  return message
}

/** What the JSON of a message contains exactly if one of its detections has the label: text of its own cannot hold the quotes. */
export function labelInJson(label: string): string {
  return `"label":${JSON.stringify(label)}`
}
