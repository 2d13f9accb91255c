import { pictureHeightPx, pictureWidthPx } from '../world/clock.js'
import { type ClipMesh, type Corner, visitTriangles } from './clip-space.js'

/** The coverage grid has one cell for every 2 x 2 pixels of the picture. */
export const cellPx = 2
const columns = pictureWidthPx / cellPx
const rows = pictureHeightPx / cellPx

/** Cells of one code that are seen, and their bounds in pixels. */
export interface Seen {
  cells: number
  x1: number
  y1: number
  x2: number
  y2: number
}

/**
 * A depth buffer over cells of 2 x 2 pixels that answers one question: how much of a thing is hidden. It draws no
 * picture; those come from the 3D renderer.
 */
export class Coverage {
  readonly #stillDepth = new Float32Array(columns * rows).fill(2)
  readonly #depth = new Float32Array(columns * rows)
  readonly #code = new Uint16Array(columns * rows)

  /** Adds what stands still; survives `begin`. */
  addStill(mesh: ClipMesh): void {
    visitTriangles(mesh, 0, mesh.index.length, (a, b, c) =>
      fill(a, b, c, 0, 0, columns, rows, (cell, depth) => {
        if (depth < this.#stillDepth[cell]!) this.#stillDepth[cell] = depth
      }),
    )
  }

  /** Starts a frame with the still things alone. */
  begin(): void {
    this.#depth.set(this.#stillDepth)
    this.#code.fill(0)
  }

  /** @param code - 1 or more; what `seen` will report */
  add(mesh: ClipMesh, firstIndex: number, indexCount: number, code: number): void {
    visitTriangles(mesh, firstIndex, indexCount, (a, b, c) =>
      fill(a, b, c, 0, 0, columns, rows, (cell, depth) => {
        if (depth >= this.#depth[cell]!) return
        this.#depth[cell] = depth
        this.#code[cell] = code
      }),
    )
  }

  /** What is left visible of every code. */
  seen(): Map<number, Seen> {
    const found = new Map<number, Seen>()
    for (let row = 0, cell = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, cell++) {
        const code = this.#code[cell]!
        if (code === 0) continue
        const [x, y] = [column * cellPx, row * cellPx]
        const seen = found.get(code)
        if (seen === undefined) found.set(code, { cells: 1, x1: x, y1: y, x2: x + cellPx, y2: y + cellPx })
        else {
          seen.cells++
          seen.x1 = Math.min(seen.x1, x)
          seen.x2 = Math.max(seen.x2, x + cellPx)
          seen.y2 = y + cellPx
        }
      }
    }
    return found
  }
}

export interface IndexRun {
  readonly mesh: ClipMesh
  readonly firstIndex: number
  readonly indexCount: number
}

/** Cells of a thing's whole outline, as if nothing hid it, also beyond the picture's edge. */
export function outlineCells(
  runs: readonly IndexRun[],
  box: { x1: number; y1: number; x2: number; y2: number },
): number {
  const limit = 3 * Math.max(columns, rows)
  const left = Math.max(-limit, Math.floor(box.x1 / cellPx) - 1)
  const top = Math.max(-limit, Math.floor(box.y1 / cellPx) - 1)
  const width = Math.min(limit, Math.ceil(box.x2 / cellPx) + 1) - left
  const height = Math.min(limit, Math.ceil(box.y2 / cellPx) + 1) - top
  if (width <= 0 || height <= 0) return 0
  const stamp = new Uint8Array(width * height)
  let cells = 0
  for (const { mesh, firstIndex, indexCount } of runs) {
    visitTriangles(mesh, firstIndex, indexCount, (a, b, c) =>
      fill(a, b, c, left, top, width, height, (cell) => {
        if (stamp[cell] === 0) {
          stamp[cell] = 1
          cells++
        }
      }),
    )
  }
  return cells
}

/** Visits the cells whose centre a triangle covers, of a window of the grid that starts at (`left`, `top`). */
function fill(
  a: Corner,
  b: Corner,
  c: Corner,
  left: number,
  top: number,
  width: number,
  height: number,
  visit: (cell: number, depth: number) => void,
): void {
  const [ax, ay] = [a[0] / cellPx - left, a[1] / cellPx - top]
  const [bx, by] = [b[0] / cellPx - left, b[1] / cellPx - top]
  const [cx, cy] = [c[0] / cellPx - left, c[1] / cellPx - top]
  const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
  if (area === 0) return
  const x1 = Math.max(0, Math.ceil(Math.min(ax, bx, cx) - 0.5))
  const x2 = Math.min(width - 1, Math.floor(Math.max(ax, bx, cx) - 0.5))
  const y1 = Math.max(0, Math.ceil(Math.min(ay, by, cy) - 0.5))
  const y2 = Math.min(height - 1, Math.floor(Math.max(ay, by, cy) - 0.5))
  for (let y = y1; y <= y2; y++) {
    for (let x = x1; x <= x2; x++) {
      const [px, py] = [x + 0.5, y + 0.5]
      const wa = ((bx - px) * (cy - py) - (by - py) * (cx - px)) / area
      const wb = ((cx - px) * (ay - py) - (cy - py) * (ax - px)) / area
      const wc = 1 - wa - wb
      if (wa < 0 || wb < 0 || wc < 0) continue
      visit(y * width + x, wa * a[2] + wb * b[2] + wc * c[2])
    }
  }
}
