import { overlap } from './coco-box.js'
import type { Found, Truth } from './coco-match.js'

const matchIou = 0.5

/** Boxes of all classes in one picture; `class` is the place of a label in the list of those that are scored. */
export type PictureBoxes = Readonly<{
  truths: readonly (Truth & { class: number })[]
  found: readonly (Found & { class: number })[]
}>

/**
 * What was taken for what, over all pictures: rows are what is there, columns what was found. The last row is nothing, so its boxes are
 * false alarms, and the last column is nothing, so its things were missed.
 *
 * Boxes pair by overlap alone, of whatever class, the closest pair first, from IoU 0.5 on. What is found in a crowd of its class is not
 * counted, and crowds are no things.
 *
 * @param score - the lowest that counts.
 */
export function confusionOf(pictures: readonly PictureBoxes[], classes: number, score: number): number[][] {
  const counts = Array.from({ length: classes + 1 }, () => new Array<number>(classes + 1).fill(0))
  const count = (truth: number, found: number) => (counts[truth]![found]! += 1)
  for (const { truths, found } of pictures) {
    const things = truths.filter(({ crowd }) => !crowd)
    const boxes = found.filter((box) => box.score >= score)
    const pairs = things
      .flatMap((thing) => boxes.map((box) => ({ thing, box, iou: overlap(box.box, thing.box, false) })))
      .filter(({ iou }) => iou >= matchIou)
      .sort((a, b) => b.iou - a.iou)
    const taken = new Set<unknown>()
    for (const { thing, box } of pairs) {
      if (taken.has(thing) || taken.has(box)) continue
      taken.add(thing).add(box)
      count(thing.class, box.class)
    }
    for (const thing of things) if (!taken.has(thing)) count(thing.class, classes)
    for (const box of boxes) if (!taken.has(box) && !isInCrowd(box, truths)) count(classes, box.class)
  }
  return counts
}

function isInCrowd(box: PictureBoxes['found'][number], truths: PictureBoxes['truths']): boolean {
  return truths.some(
    (truth) => truth.crowd && truth.class === box.class && overlap(box.box, truth.box, true) >= matchIou,
  )
}
