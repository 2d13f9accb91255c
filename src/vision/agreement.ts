import type { BoxPx, Detection } from './detection.js'

/** What two models found in the same picture, in pixels of the same source. */
export type FoundTwice = Readonly<{ before: readonly Detection[]; after: readonly Detection[] }>

/** How far two models say the same of the same pictures. */
export type ModelAgreement = Readonly<{
  /** Pictures that both looked at. */
  frames: number
  /** Detections that each found. */
  before: number
  after: number
  /** Pairs: a detection of one, and the one of the other that is the same. */
  matched: number
  /** `2 x matched / (before + after)`, 0..1; 1 where neither found anything, `null` without pictures. */
  agreement: number | null
}>

/** Boxes that overlap less are two things. */
const leastIou = 0.5

/**
 * Compares what two models found, above the score at which each is served; scores themselves are not compared.
 *
 * Two detections of a picture are the same where their labels are equal and their boxes overlap with an IoU of at least 0.5. They are paired
 * one to one, those with the largest IoU first. Detections of all pictures are counted together, so that a picture with many weighs more than
 * one with few. A picture in which neither found anything speaks for neither: it counts as a frame, and changes no figure. With 1 for it,
 * a model that finds nothing at all would agree well wherever there is seldom something to be seen.
 */
export function agreementOf(pairs: Iterable<FoundTwice>): ModelAgreement {
  const sum = { frames: 0, before: 0, after: 0, matched: 0 }
  for (const { before, after } of pairs) {
    sum.frames += 1
    sum.before += before.length
    sum.after += after.length
    sum.matched += matchedOf(before, after)
  }
  return withShare(sum)
}

/** Of pictures that were compared in several places. */
export function joinedAgreement(parts: Iterable<Omit<ModelAgreement, 'agreement'>>): ModelAgreement {
  const sum = { frames: 0, before: 0, after: 0, matched: 0 }
  for (const { frames, before, after, matched } of parts) {
    sum.frames += frames
    sum.before += before
    sum.after += after
    sum.matched += matched
  }
  return withShare(sum)
}

function withShare(sum: Omit<ModelAgreement, 'agreement'>): ModelAgreement {
  const found = sum.before + sum.after
  if (found > 0) return { ...sum, agreement: (2 * sum.matched) / found }
  return { ...sum, agreement: sum.frames > 0 ? 1 : null }
}

function matchedOf(before: readonly Detection[], after: readonly Detection[]): number {
  const same = before.flatMap((one, first) =>
    after.flatMap((other, second) => {
      const share = one.label === other.label ? iou(one.boxPx, other.boxPx) : 0
      return share >= leastIou ? [{ first, second, share }] : []
    }),
  )
  same.sort((a, b) => b.share - a.share)
  const taken = { first: new Set<number>(), second: new Set<number>() }
  for (const { first, second } of same) {
    if (taken.first.has(first) || taken.second.has(second)) continue
    taken.first.add(first)
    taken.second.add(second)
  }
  return taken.first.size
}

function iou(one: BoxPx, other: BoxPx): number {
  const width = Math.min(one.x2, other.x2) - Math.max(one.x1, other.x1)
  const height = Math.min(one.y2, other.y2) - Math.max(one.y1, other.y1)
  if (width <= 0 || height <= 0) return 0
  const common = width * height
  return common / (areaOf(one) + areaOf(other) - common)
}

function areaOf({ x1, y1, x2, y2 }: BoxPx): number {
  return (x2 - x1) * (y2 - y1)
}
