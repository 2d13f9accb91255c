import type { Candidates } from './heads/candidates.js'

/**
 * Greedy non-maximum suppression within each class.
 *
 * Candidates are visited by descending score, equals in their order; one is dropped when it overlaps a kept one of its class by
 * more than `iouThreshold`.
 *
 * @returns indices of the kept ones, best first, at most `maxKept`.
 * @see test/golden/nms.json for traces of torchvision's `batched_nms`
 */
export function classAwareNms(candidates: Candidates, iouThreshold: number, maxKept: number): number[] {
  const { boxes, classes } = candidates
  const kept: number[] = []
  for (const index of byScore(candidates)) {
    if (kept.length === maxKept) break
    const classId = classes[index]
    const dropped = kept.some(
      (other) => classes[other] === classId && iou(boxes, index, other) > iouThreshold,
    )
    if (!dropped) kept.push(index)
  }
  return kept
}

/** The best `maxKept`, for heads that have done NMS themselves. */
export function bestOf(candidates: Candidates, maxKept: number): number[] {
  return byScore(candidates).slice(0, maxKept)
}

function byScore({ count, scores }: Candidates): number[] {
  return Array.from({ length: count }, (_, index) => index).sort((a, b) => scores[b]! - scores[a]!)
}

/** Intersection over union of two boxes `x1, y1, x2, y2`; 0 where both are empty. */
function iou(boxes: Float32Array, a: number, b: number): number {
  const i = a * 4
  const j = b * 4
  const width = Math.min(boxes[i + 2]!, boxes[j + 2]!) - Math.max(boxes[i]!, boxes[j]!)
  const height = Math.min(boxes[i + 3]!, boxes[j + 3]!) - Math.max(boxes[i + 1]!, boxes[j + 1]!)
  if (width <= 0 || height <= 0) return 0
  const intersection = width * height
  const areaA = (boxes[i + 2]! - boxes[i]!) * (boxes[i + 3]! - boxes[i + 1]!)
  const areaB = (boxes[j + 2]! - boxes[j]!) * (boxes[j + 3]! - boxes[j + 1]!)
  return intersection / (areaA + areaB - intersection)
}
