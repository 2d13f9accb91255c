import { type CocoBox, overlap } from './coco-box.js'

/** A labelled thing of one class in one picture. */
export type Truth = Readonly<{
  box: CocoBox
  /** Decides whether it is small, medium or large; of a segmented thing less than its box has. */
  areaPx: number
  /** Many things in one box: what is found in it is neither right nor wrong. */
  crowd: boolean
}>

/** A box that a model found for one class in one picture. `score` is in 0..1. */
export type Found = Readonly<{ box: CocoBox; score: number }>

/** Areas in square pixels, both ends included. */
export type AreaRange = Readonly<{ name: 'all' | 'small' | 'medium' | 'large'; from: number; to: number }>

export const areaRanges: readonly AreaRange[] = [
  { name: 'all', from: 0, to: 1e10 },
  { name: 'small', from: 0, to: 32 ** 2 },
  { name: 'medium', from: 32 ** 2, to: 96 ** 2 },
  { name: 'large', from: 96 ** 2, to: 1e10 },
]

/** 0.5, 0.55 to 0.95, with the bits that numpy's `linspace` gives them. */
export const iouThresholds: readonly number[] = linspace(0.5, 0.95, 10)
/** 0, 0.01 to 1, the same. */
export const recallThresholds: readonly number[] = linspace(0, 1, 101)

function linspace(from: number, to: number, count: number): number[] {
  const step = (to - from) / (count - 1)
  return Array.from({ length: count }, (_, index) => (index === count - 1 ? to : index * step + from))
}

/** Detections of one class that count in one picture: the best ones. */
export const mostDetections = 100

/** What became of the detections of one class in one picture, best first. */
export type PictureMatch = Readonly<{
  /** At most {@link mostDetections}. */
  scores: Float64Array
  /** By IoU threshold and detection: it overlaps a truth that no better one has taken. */
  matched: Uint8Array
  /** By IoU threshold and detection: it counts neither way. */
  ignored: Uint8Array
  /** By IoU threshold and detection: which truth it took, -1 where none. */
  truthOf: Int32Array
  /** Truths that ought to be found. */
  positives: number
}>

/** Boxes of one class in one picture with their overlaps, for every range of areas. */
export class MatchedPicture {
  readonly #found: readonly Found[]
  /** By detection and truth. */
  readonly #overlaps: Float64Array

  constructor(
    readonly truths: readonly Truth[],
    found: readonly Found[],
  ) {
    this.#found = found.toSorted((a, b) => b.score - a.score).slice(0, mostDetections)
    this.#overlaps = new Float64Array(this.#found.length * truths.length)
    let at = 0
    for (const { box } of this.#found)
      for (const truth of truths) this.#overlaps[at++] = overlap(box, truth.box, truth.crowd)
  }

  /** Best first. */
  get found(): readonly Found[] {
    return this.#found
  }

  /**
   * Gives each detection, best first, the free truth that it overlaps most, one that counts before one that does not.
   *
   * @see pycocotools `COCOeval.evaluateImg`
   */
  match({ from, to }: AreaRange): PictureMatch {
    const { truths } = this
    const found = this.#found
    const ignoredTruth = truths.map(({ crowd, areaPx }) => crowd || areaPx < from || areaPx > to)
    const order = truths
      .map((_, index) => index)
      .sort((a, b) => Number(ignoredTruth[a]) - Number(ignoredTruth[b]))
    const size = iouThresholds.length * found.length
    const matched = new Uint8Array(size)
    const ignored = new Uint8Array(size)
    const truthOf = new Int32Array(size).fill(-1)
    iouThresholds.forEach((threshold, at) => {
      const taken = new Uint8Array(truths.length)
      found.forEach(({ box }, index) => {
        const place = at * found.length + index
        const best = this.#bestFor(index, threshold, order, ignoredTruth, taken)
        if (best >= 0) {
          taken[best] = 1
          matched[place] = 1
          truthOf[place] = best
          ignored[place] = Number(ignoredTruth[best])
        } else {
          const area = box[2] * box[3]
          ignored[place] = Number(area < from || area > to)
        }
      })
    })
    return {
      scores: Float64Array.from(found, ({ score }) => score),
      matched,
      ignored,
      truthOf,
      positives: ignoredTruth.filter((isIgnored) => !isIgnored).length,
    }
  }

  #bestFor(
    index: number,
    threshold: number,
    order: readonly number[],
    ignoredTruth: readonly boolean[],
    taken: Uint8Array,
  ): number {
    let most = Math.min(threshold, 1 - 1e-10)
    let best = -1
    for (const truth of order) {
      if (taken[truth] === 1 && !this.truths[truth]!.crowd) continue
      if (best >= 0 && !ignoredTruth[best] && ignoredTruth[truth]) break
      const share = this.#overlaps[index * this.truths.length + truth]!
      if (share < most) continue
      most = share
      best = truth
    }
    return best
  }
}
