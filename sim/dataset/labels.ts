import { type TruthFrame, type TruthObject, classNames } from '../truth/format.js'
import { pictureHeightPx, pictureWidthPx } from '../world/clock.js'

/** Less visible, or smaller, and a person who labels photographs would not have boxed it either. */
const leastVisible = 0.25
/** A big thing cut off by the picture's edge is boxed all the same, if this much of the picture shows it. */
const cutOff = { leastVisible: 0.06, leastAreaPx: 10_000 } as const
const leastSidePx = 8
/** From here on the whole outline is as good as the seen one, and exact. */
const wholeVisible = 0.9

/** The box that a label holds: the visible part of the thing, pixels of the full picture; undefined if it gets no label. */
export function labelBox({
  box,
  visibleBox,
  visible,
}: TruthObject): readonly [number, number, number, number] | undefined {
  if (visibleBox === null) return undefined
  const shownPx = (visibleBox[2] - visibleBox[0]) * (visibleBox[3] - visibleBox[1])
  const big = visible >= cutOff.leastVisible && shownPx >= cutOff.leastAreaPx
  if (visible < leastVisible && !big) return undefined
  const [x1, y1, x2, y2] = visible >= wholeVisible ? box : visibleBox
  return x2 - x1 < leastSidePx || y2 - y1 < leastSidePx ? undefined : [x1, y1, x2, y2]
}

/** YOLO text: class index, centre and size as shares of the picture. Carried helmets get none: they are hard negatives. */
export function yoloLabels(frame: TruthFrame): string {
  const lines = frame.objects.flatMap((object) => {
    const box = labelBox(object)
    if (box === undefined) return []
    const [x1, y1, x2, y2] = box
    const shares = [
      (x1 + x2) / 2 / pictureWidthPx,
      (y1 + y2) / 2 / pictureHeightPx,
      (x2 - x1) / pictureWidthPx,
      (y2 - y1) / pictureHeightPx,
    ]
    return [`${classNames.indexOf(object.class)} ${shares.map((share) => share.toFixed(5)).join(' ')}`]
  })
  return lines.map((line) => `${line}\n`).join('')
}
