import type { DetectionsText } from '../messages/detections-json.js'
import { CursorError } from './errors.js'

/**
 * Key whose text order is the order of results: time of capture, then camera, then frame number. Times and numbers are padded,
 * so that comparing text compares them; ids hold no colon.
 */
export type OrderKey = string

const timeDigits = 15
const seqDigits = 16
const form = new RegExp(`^\\d{${timeDigits}}:[A-Za-z0-9._-]{1,64}:\\d{${seqDigits}}$`)

export function orderKey({ cameraId, seq, capturedAtMs }: Omit<DetectionsText, 'json'>): OrderKey {
  return `${paddedTime(capturedAtMs)}:${cameraId}:${String(seq).padStart(seqDigits, '0')}`
}

/** Least text that a key of that time can start with. */
export function paddedTime(wallMs: number): string {
  const clipped = Math.min(Math.max(Math.trunc(wallMs), 0), 10 ** timeDigits - 1)
  return String(clipped).padStart(timeDigits, '0')
}

export function placeOfKey(key: OrderKey): Readonly<{ timeMs: number; cameraId: string; seq: number }> {
  return {
    timeMs: Number(key.slice(0, timeDigits)),
    cameraId: cameraOfKey(key),
    seq: Number(key.slice(-seqDigits)),
  }
}

export function cameraOfKey(key: OrderKey): string {
  return key.slice(timeDigits + 1, -(seqDigits + 1))
}

export function cursorOf(key: OrderKey): string {
  return Buffer.from(key).toString('base64url')
}

/** @throws CursorError */
export function keyOfCursor(cursor: string): OrderKey {
  const key = Buffer.from(cursor, 'base64url').toString()
  if (!form.test(key)) throw new CursorError()
  return key
}
