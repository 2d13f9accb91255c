import type { SizePx } from '../../vision/letterbox.js'
import type { Candidates } from './candidates.js'
import type { HeadOptions } from './head.js'

/** Appends the box whose four numbers stand from `at`, whatever their order and unit. */
export function pushBox(
  out: Candidates,
  boxes: Float32Array,
  at: number,
  { box, unit }: Pick<HeadOptions, 'box' | 'unit'>,
  input: SizePx,
  score: number,
  classId: number,
): void {
  const [sx, sy] = unit === 'px' ? [1, 1] : [input.widthPx, input.heightPx]
  const a = boxes[at]!
  const b = boxes[at + 1]!
  const c = boxes[at + 2]!
  const d = boxes[at + 3]!
  switch (box) {
    case 'xyxy':
      out.pushCorners(a * sx, b * sy, c * sx, d * sy, score, classId)
      return
    case 'yxyx':
      out.pushCorners(b * sx, a * sy, d * sx, c * sy, score, classId)
      return
    case 'cxcywh':
      out.pushCentre(a * sx, b * sy, c * sx, d * sy, score, classId)
      return
    default:
      box satisfies never
  }
}
