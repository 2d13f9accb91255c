import type { QueuedRecord } from '../../src/delivery/record-queue.js'

/** `a1` is the first record of camera `a`. */
export function queuedRecord(id: string): QueuedRecord {
  return {
    id,
    type: 'gantry.detections.v1',
    cameraId: id.replace(/\d+/, ''),
    time: '2026-11-20T08:15:30.120Z',
    value: Buffer.from('{}'),
    position: Number(/\d+/.exec(id)?.[0] ?? 0),
    isStored: false,
    acceptedMs: 0,
  }
}
