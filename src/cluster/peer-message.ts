import { readDetectionsJson } from '../messages/detections-json.js'
import type { DetectionsMessage } from '../messages/detections-message.js'

/** A message of the stream of another node, as far as a node asks for them. */
export type PeerMessage =
  | Readonly<{ type: 'hello' | 'subscribed' | 'pong' }>
  | Readonly<{ type: 'gap'; dropped: number; reason: string }>
  | Readonly<{ type: 'error'; code: string; message: string }>
  | Readonly<{ type: 'detections'; cursor: string; message: DetectionsMessage; json: Buffer }>
  /** One of a later version, which says nothing to this one. */
  | Readonly<{ type: 'unknown' }>

export type PeerPicture = Readonly<{ cameraId: string; seq: number; bytes: Buffer }>

const named = ['hello', 'subscribed', 'pong'] as const

/** @param text - of a message that a server of `gantry.v1` sends. */
export function readPeerMessage(text: string): PeerMessage {
  const { type, ...rest } = objectIn(text)
  const plain = named.find((name) => name === type)
  if (plain !== undefined) return { type: plain }
  if (type === 'gap') return { type, dropped: Number(rest['dropped'] ?? 0), reason: String(rest['reason']) }
  if (type === 'error') return { type, code: String(rest['code']), message: String(rest['message']) }
  const { cursor, ...message } = rest
  if (type !== 'detections' || typeof cursor !== 'string') return { type: 'unknown' }
  const json = JSON.stringify(message)
  const read = readDetectionsJson(json)
  return read === undefined ? { type: 'unknown' } : { type, cursor, message: read, json: Buffer.from(json) }
}

/** @returns undefined for what is no picture message. */
export function readPeerPicture(bytes: Buffer): PeerPicture | undefined {
  if (bytes.length < 4 || bytes.length < 4 + bytes.readUInt32BE(0)) return undefined
  const { cameraId, seq } = objectIn(bytes.toString('utf8', 4, 4 + bytes.readUInt32BE(0)))
  if (typeof cameraId !== 'string' || typeof seq !== 'number') return undefined
  return { cameraId, seq, bytes }
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
