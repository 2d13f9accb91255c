/**
 * Boxes found in one frame before NMS, in model-input pixels: a list per field, reused from frame to frame so that decoding
 * allocates nothing.
 */
export class Candidates {
  count = 0
  /** x1, y1, x2, y2 of each. */
  boxes: Float32Array
  scores: Float32Array
  classes: Int32Array

  constructor(capacity = 1024) {
    this.boxes = new Float32Array(capacity * 4)
    this.scores = new Float32Array(capacity)
    this.classes = new Int32Array(capacity)
  }

  clear(): void {
    this.count = 0
  }

  pushCorners(x1: number, y1: number, x2: number, y2: number, score: number, classId: number): void {
    if (this.count === this.scores.length) this.#grow()
    const at = this.count * 4
    this.boxes[at] = x1
    this.boxes[at + 1] = y1
    this.boxes[at + 2] = x2
    this.boxes[at + 3] = y2
    this.scores[this.count] = score
    this.classes[this.count] = classId
    this.count += 1
  }

  pushCentre(cx: number, cy: number, w: number, h: number, score: number, classId: number): void {
    this.pushCorners(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, classId)
  }

  /** Gives each box another class, and forgets those whose class becomes negative. */
  mapClasses(map: (classId: number) => number): void {
    const { classes } = this
    this.keep((at) => {
      classes[at] = map(classes[at]!)
      return classes[at] >= 0
    })
  }

  /** Forgets the boxes that are not to be kept; asked once for each, in their order. */
  keep(isKept: (index: number) => boolean): void {
    const { boxes, scores, classes } = this
    let kept = 0
    for (let at = 0; at < this.count; at++) {
      if (!isKept(at)) continue
      if (kept !== at) boxes.copyWithin(kept * 4, at * 4, at * 4 + 4)
      scores[kept] = scores[at]!
      classes[kept] = classes[at]!
      kept += 1
    }
    this.count = kept
  }

  #grow(): void {
    const { boxes, scores, classes } = this
    this.boxes = new Float32Array(boxes.length * 2)
    this.scores = new Float32Array(scores.length * 2)
    this.classes = new Int32Array(classes.length * 2)
    this.boxes.set(boxes)
    this.scores.set(scores)
    this.classes.set(classes)
  }
}

const highestClass = 65_535

/** A class as a model gives its number; not a number stays so, and what no model has classes for is the highest. */
export function classNumber(value: number): number {
  return Math.min(Math.round(value), highestClass)
}
