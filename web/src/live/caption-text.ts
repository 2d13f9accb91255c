import { isDanger } from './label-colors.js'

/** Under these widths of a picture, in CSS pixels, captions would hide the people they speak of. */
const roomForScorePx = 420
const roomForAllPx = 300

/** What stands at a box: label and score, the label alone where there is little room, and on small pictures only what is a reason to look. */
export function captionText(label: string, score: number, pictureWidthPx: number): string | undefined {
  if (pictureWidthPx >= roomForScorePx) return `${label} ${Math.round(score * 100)}%`
  return pictureWidthPx >= roomForAllPx || isDanger(label) ? label : undefined
}
