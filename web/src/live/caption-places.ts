import type { Rect, Size } from './geometry.js'

/** Finds a place for each caption of one picture, so that a helmet's does not cover that of the person below it. */
export class CaptionPlaces {
  readonly #taken: Rect[]

  /**
   * @param place - where the picture lies; captions stay inside.
   * @param covered - parts of it that something else lies over.
   */
  constructor(
    readonly place: Rect,
    covered: readonly Rect[] = [],
  ) {
    this.#taken = [...covered]
  }

  /**
   * On top of the box if that is free, above another caption there, else under it, else inside; the first place when all are taken.
   *
   * @param edge - width of the line of the box.
   */
  take(size: Size, box: Rect, edge: number): Rect {
    const above = box.y - size.height
    const below = box.y + box.height
    const left = box.x - edge
    const right = box.x + box.width + edge - size.width
    const wanted = [
      { x: left, y: above },
      { x: right, y: above },
      { x: left, y: above - size.height },
      { x: left, y: below },
      { x: right, y: below },
      { x: left, y: box.y },
    ]
    const rects = wanted
      .filter(({ y }) => this.#fitsDown(y, size))
      .map(({ x, y }) => ({ x: this.#inside(x, size), y, ...size }))
    const first = { x: this.#inside(left, size), y: Math.max(this.place.y, above), ...size }
    const chosen = rects.find((rect) => !this.#taken.some((other) => overlaps(rect, other))) ?? first
    this.#taken.push(chosen)
    return chosen
  }

  #fitsDown(y: number, { height }: Size): boolean {
    return y >= this.place.y && y + height <= this.place.y + this.place.height
  }

  #inside(x: number, { width }: Size): number {
    return Math.max(this.place.x, Math.min(x, this.place.x + this.place.width - width))
  }
}

function overlaps(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}
