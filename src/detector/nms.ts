import type { Candidates } from './heads/candidates.js'

export type Suppression = Readonly<{
  /** Overlap above which the lower one of two rivals is dropped. */
  iouThreshold: number
  maxKept: number
  /** Whether boxes of one class are rivals: not where the model has done NMS itself. */
  withinClasses: boolean
  /** Group of each class, named by one of its classes; classes of one group are rivals. */
  exclusive?: readonly number[] | undefined
}>

/**
 * Greedy non-maximum suppression among rivals.
 *
 * Candidates are visited by descending score, equals in their order; one is dropped when it overlaps a kept rival by more than
 * `iouThreshold`.
 *
 * @returns indices of the kept ones, best first, at most `maxKept`.
 * @see test/golden/nms.json for traces of torchvision's `batched_nms`
 */
export function suppress(candidates: Candidates, suppression: Suppression): number[] {
  const { iouThreshold, maxKept, withinClasses, exclusive } = suppression
  const { boxes, classes } = candidates
  if (!withinClasses && exclusive === undefined) return byScore(candidates).slice(0, maxKept)
  const groupOf = (classId: number): number => exclusive?.[classId] ?? classId
  const areRivals = (a: number, b: number): boolean => (a === b ? withinClasses : groupOf(a) === groupOf(b))
  const kept: number[] = []
  for (const index of byScore(candidates)) {
    if (kept.length === maxKept) break
    const dropped = kept.some(
      (other) => areRivals(classes[other]!, classes[index]!) && iou(boxes, index, other) > iouThreshold,
    )
    if (!dropped) kept.push(index)
  }
  return kept
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
