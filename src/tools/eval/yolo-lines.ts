/** A box of a label file: number of the class; centre and size as shares of the picture's width and height. */
export type YoloBox = Readonly<{ class: number; cx: number; cy: number; w: number; h: number }>

export type YoloLines = Readonly<{
  boxes: readonly YoloBox[]
  /** Boxes without an area, which are left out. */
  empty: number
  /** `line 3: what is wrong with it`. */
  faults: readonly string[]
}>

/** Exporters round; what is further outside is in other units. */
const lowest = -0.01
const highest = 1.01

/**
 * Reads a label file of the YOLO family: `class cx cy w h` on each line, or `class x1 y1 x2 y2 x3 y3 ...`, a polygon, whose box is taken.
 *
 * @param classes - how many there are.
 */
export function yoloLines(text: string, classes: number): YoloLines {
  const boxes: YoloBox[] = []
  const faults: string[] = []
  let empty = 0
  text.split(/\r?\n/).forEach((line, index) => {
    if (line.trim() === '') return
    const read = boxOf(line.trim().split(/\s+/), classes)
    if (typeof read === 'string') faults.push(`line ${index + 1}: ${read}`)
    else if (read.w > 0 && read.h > 0) boxes.push(read)
    else empty += 1
  })
  return { boxes, empty, faults }
}

function boxOf(words: readonly string[], classes: number): YoloBox | string {
  const numbers = words.map((word) => (/^[-+.\d]/.test(word) ? Number(word) : Number.NaN))
  const bad = numbers.findIndex((number) => !Number.isFinite(number))
  if (bad >= 0) return `"${words[bad]?.slice(0, 40)}" is no number`
  const [id, ...values] = numbers as [number, ...number[]]
  if (!Number.isInteger(id) || id < 0 || id >= classes)
    return `class ${id} is not one of 0 to ${classes - 1}, which data.yaml names`
  if (values.length === 5) return 'six numbers: a label has no score; these may be predictions'
  if (values.length !== 4 && (values.length < 6 || values.length % 2 !== 0))
    return `${words.length} numbers, expected class, cx, cy, w, h`
  const outside = values.find((value) => value < lowest || value > highest)
  if (outside !== undefined) return `${outside} is not a share of the picture (0 to 1)`
  const [cx, cy, w, h] = values as [number, number, number, number]
  return values.length === 4 ? { class: id, cx, cy, w, h } : ofPolygon(id, values)
}

function ofPolygon(id: number, values: readonly number[]): YoloBox {
  const xs = values.filter((_, index) => index % 2 === 0)
  const ys = values.filter((_, index) => index % 2 === 1)
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)]
  return { class: id, cx: (left + right) / 2, cy: (top + bottom) / 2, w: right - left, h: bottom - top }
}
