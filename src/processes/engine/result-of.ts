import type { EngineResult } from '../../cameras/engine-report.js'
import type { DetectorInfo, DetectorResult } from '../../detector/camera-detector.js'
import { openDetectionsJson, type OpenDetections } from '../../messages/detections-json.js'
import type { Detection } from '../../vision/detection.js'
import type { Frame } from '../../vision/frame.js'
import type { CameraUnit } from './camera-unit.js'

/**
 * What leaves of a frame: the text that everybody gets, and beside it what control needs without reading that. Takes the gaps that the
 * camera's decoder told since the last one.
 *
 * @param resultOfSeq - number of the frame that was analysed, where this one shows the same.
 */
export function resultOf(
  unit: CameraUnit,
  frame: Frame,
  { detections, timingsMs, batchSize }: DetectorResult,
  model: DetectorInfo['model'],
  resultOfSeq: number | undefined,
): EngineResult<string> {
  const { cameraId, seq, capturedAtMs, arrivedMs, source, quality } = frame
  const message: OpenDetections = {
    cameraId,
    seq,
    capturedAt: new Date(capturedAtMs).toISOString(),
    ptsMs: frame.ptsMs,
    frame: { ...source, quality },
    model,
    detections: detections.map(roundedDetection),
    ...(resultOfSeq === undefined ? {} : { resultOfSeq }),
    timingsMs: {
      queue: rounded(timingsMs.queue, 100),
      infer: rounded(timingsMs.infer, 100),
      postprocess: rounded(timingsMs.postprocess, 100),
    },
  }
  return {
    cameraId,
    seq,
    capturedAtMs,
    arrivedMs,
    source,
    model: model.name,
    ...(resultOfSeq === undefined && { run: { timingsMs: message.timingsMs, batchSize } }),
    labels: [...countedLabels(detections)],
    decodeGapsMs: unit.takeDecodeGapsMs(),
    counts: { ...unit.counts, shed: { ...unit.counts.shed } },
    text: openDetectionsJson(message),
  }
}

function countedLabels(detections: readonly Detection[]): Map<string, number> {
  const counted = new Map<string, number>()
  for (const { label } of detections) counted.set(label, (counted.get(label) ?? 0) + 1)
  return counted
}

/** Digits nobody can use cost every consumer of a message. */
function rounded(value: number, perUnit: number): number {
  return Math.round(value * perUnit) / perUnit
}

/** Boxes to a hundredth of a pixel, scores to four digits. */
function roundedDetection({ boxPx, score, ...rest }: Detection) {
  const { x1, y1, x2, y2 } = boxPx
  const box = { x1: rounded(x1, 100), y1: rounded(y1, 100), x2: rounded(x2, 100), y2: rounded(y2, 100) }
  return { ...rest, score: rounded(score, 10_000), boxPx: box }
}
