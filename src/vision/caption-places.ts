/** In pixels of what is drawn on. */
export type Size = Readonly<{ width: number; height: number }>
export type Rect = Readonly<{ x: number; y: number; width: number; height: number }>

/** These are heads, or worn on one, from edge to edge. */
const headLabels = /head|helmet|hat\b|face|\bcap\b/i

/** The part of a box that nothing may be written over: the head of a person, which is its upper third; the whole of a helmet. */
export function headPlace(label: string, box: Rect): Rect {
  return headLabels.test(label.replaceAll('_', ' ')) ? box : { ...box, height: box.height / 3 }
}

/** Finds a place for each caption of one picture, on the page and in snapshots: none hides another, nor a head. */
export class CaptionPlaces {
  readonly #taken: Rect[]

  /**
   * @param place - where the picture lies; captions stay inside.
   * @param covered - parts of it that something else lies over, and heads ({@link headPlace}), also those of the captions' own boxes.
   */
  constructor(
    readonly place: Rect,
    covered: readonly Rect[] = [],
  ) {
    this.#taken = [...covered]
  }

  /**
   * On top of the box if that is free, above another caption there, else under it, inside at its foot or beside it.
   *
   * @param edge - width of the line of the box.
   * @returns undefined where there is no room: a box without its name, whose colour still tells it, hides less than a name on a face.
   */
  take(size: Size, box: Rect, edge: number): Rect | undefined {
    const chosen = this.#wanted(size, box, edge).find(
      (rect) => this.#fitsDown(rect) && !this.#taken.some((other) => overlaps(rect, other)),
    )
    if (chosen !== undefined) this.#taken.push(chosen)
    return chosen
  }

  #wanted(size: Size, box: Rect, edge: number): Rect[] {
    const [above, below] = [box.y - size.height, box.y + box.height]
    const left = box.x - edge
    const right = box.x + box.width + edge - size.width
    const [before, behind] = [box.x - edge - size.width, box.x + box.width + edge]
    const corners = [
      { x: left, y: above },
      { x: right, y: above },
      { x: left, y: above - size.height },
      { x: left, y: below },
      { x: right, y: below },
      { x: left, y: below - size.height },
      { x: right, y: below - size.height },
    ]
    const beside = [box.y, box.y + box.height / 2, below - size.height].flatMap((y) => [
      { x: behind, y },
      { x: before, y },
    ])
    const further = [2, 3].flatMap((rows) => [
      { x: left, y: above - rows * size.height },
      { x: left, y: below + (rows - 1) * size.height },
    ])
    return [
      ...corners.map(({ x, y }) => ({ x: this.#inside(x, size), y, ...size })),
      // Beside means beside: moved inside it would lie over the box.
      ...beside.filter(({ x }) => x === this.#inside(x, size)).map((at) => ({ ...at, ...size })),
      ...further.map(({ x, y }) => ({ x: this.#inside(x, size), y, ...size })),
    ]
  }

  #fitsDown({ y, height }: Rect): boolean {
    return y >= this.place.y && y + height <= this.place.y + this.place.height
  }

  #inside(x: number, { width }: Size): number {
    return Math.max(this.place.x, Math.min(x, this.place.x + this.place.width - width))
  }
}

function overlaps(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}
