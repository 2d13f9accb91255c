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
