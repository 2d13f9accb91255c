import type { DetectionsMessage } from '../api/types.js'
import { isDanger } from '../../../src/vision/label-colors.js'
import { labelName } from '../../../src/vision/label-name.js'

/** Under these widths of a picture, in CSS pixels, captions would hide the people they speak of. */
const roomForScorePx = 420
const roomForAllPx = 300

/** So much of an attribute is read at a glance. */
const longestValue = 24

type Described = Pick<DetectionsMessage['detections'][number], 'label' | 'score' | 'attributes'>

/**
 * What stands at a box: label, attributes and score ("helmet yellow 91%"), no score where there is little room, and on small pictures only
 * the label of what is a reason to look.
 */
export function captionText(
  { label, score, attributes = [] }: Described,
  pictureWidthPx: number,
): string | undefined {
  if (pictureWidthPx < roomForAllPx) return isDanger(label) ? labelName(label) : undefined
  const described = [labelName(label), ...attributes.map(({ value }) => shortened(value))].join(' ')
  return hasRoomForScore(pictureWidthPx) ? `${described} ${Math.round(score * 100)}%` : described
}

export function hasRoomForScore(pictureWidthPx: number): boolean {
  return pictureWidthPx >= roomForScorePx
}

function shortened(value: string): string {
  return value.length > longestValue ? `${value.slice(0, longestValue - 1)}…` : value
}
