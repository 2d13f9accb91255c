import { type TruthFrame, labelBox } from '../../sim/index.js'
import type { Detection } from '../../src/vision/detection.js'

type Corners = readonly [number, number, number, number]

/** Boxes of one class, over the frames counted so far. */
export type Tally = { right: number; wrong: number; labelled: number }

const matchIou = 0.5
/** Of a box's area on a thing too hidden or too small for a label: it is neither right nor wrong then. */
const onHiddenIou = 0.3

/**
 * Counts one frame's boxes against its truth: best score first, a box is right if it overlaps a free labelled thing of its class
 * by IoU 0.5. The counts of `training/ppe/clips.py`.
 */
export function countAgainstTruth(
  detections: readonly Pick<Detection, 'label' | 'score' | 'boxPx'>[],
  { objects }: TruthFrame,
  tallies: Map<string, Tally>,
): void {
  const tallyOf = (label: string): Tally => {
    const tally = tallies.get(label) ?? { right: 0, wrong: 0, labelled: 0 }
    tallies.set(label, tally)
    return tally
  }
  const things = objects.map((object) => ({ class: object.class, box: object.box, label: labelBox(object) }))
  const free = new Set(things.filter(({ label }) => label !== undefined))
  for (const thing of free) tallyOf(thing.class).labelled++
  for (const { label, boxPx } of detections.toSorted((a, b) => b.score - a.score)) {
    const corners: Corners = [boxPx.x1, boxPx.y1, boxPx.x2, boxPx.y2]
    const [best] = [...free]
      .filter((thing) => thing.class === label)
      .map((thing) => ({ thing, overlap: iou(corners, thing.label ?? thing.box) }))
      .toSorted((a, b) => b.overlap - a.overlap)
    if (best !== undefined && best.overlap >= matchIou) {
      free.delete(best.thing)
      tallyOf(label).right++
    } else if (
      !things.some(
        (thing) =>
          thing.label === undefined && thing.class === label && iou(corners, thing.box) >= onHiddenIou,
      )
    )
      tallyOf(label).wrong++
  }
}

function iou(a: Corners, b: Corners): number {
  const width = Math.min(a[2], b[2]) - Math.max(a[0], b[0])
  const height = Math.min(a[3], b[3]) - Math.max(a[1], b[1])
  if (width <= 0 || height <= 0) return 0
  const areaOf = ([x1, y1, x2, y2]: Corners): number => (x2 - x1) * (y2 - y1)
  return (width * height) / (areaOf(a) + areaOf(b) - width * height)
}
