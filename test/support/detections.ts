import type { DetectionsText } from '../../src/messages/detections-json.js'
import type { DetectionsMessage } from '../../src/messages/detections-message.js'

export type DetectionsOverrides = Partial<Omit<DetectionsMessage, 'capturedAt'>> & { capturedAtMs?: number }

/** A message as the camera path makes it; captured now unless told otherwise. */
export function detectionsMessage(overrides: DetectionsOverrides = {}): DetectionsMessage {
  const { capturedAtMs = Date.now(), ...rest } = overrides
  return {
    cameraId: 'dock-1',
    seq: 1,
    capturedAt: new Date(capturedAtMs).toISOString(),
    ptsMs: 82_400,
    frame: { widthPx: 1280, heightPx: 720, quality: 'ok' },
    model: { name: 'ppe', version: '1' },
    detections: [
      { label: 'helmet', score: 0.91, boxPx: { x1: 611.2, y1: 140.9, x2: 655, y2: 188.3 } },
      { label: 'person', score: 0.62, boxPx: { x1: 590, y1: 138, x2: 702.5, y2: 461 } },
    ],
    timingsMs: { queue: 3.1, infer: 21.4, postprocess: 0.8, captureToPublish: 71 },
    ...rest,
  }
}

/** The same on its way out. */
export function detectionsText(overrides: DetectionsOverrides = {}): DetectionsText {
  return textOf(detectionsMessage(overrides))
}

export function textOf(message: DetectionsMessage): DetectionsText {
  const { cameraId, seq, capturedAt } = message
  return { cameraId, seq, capturedAtMs: Date.parse(capturedAt), json: Buffer.from(JSON.stringify(message)) }
}
