import { type BufferGeometry, Matrix4, type PerspectiveCamera } from 'three'
import { pictureHeightPx, pictureWidthPx } from '../world/clock.js'
import { cameraNearM } from '../world/world.js'

/** Vertices in clip space, and triangles over them. */
export interface ClipMesh {
  /** x, y, z, w of each vertex. */
  readonly clip: Float64Array
  readonly index: ArrayLike<number>
}

/** A corner of a triangle on the picture: pixels, origin top left, and depth -1 (near) to 1 (far). */
export type Corner = readonly [x: number, y: number, depth: number]
export type TriangleVisitor = (a: Corner, b: Corner, c: Corner) => void

export function viewProjection(camera: PerspectiveCamera): Matrix4 {
  return new Matrix4().multiplyMatrices(camera.projectionMatrix, camera.matrixWorldInverse)
}

/** @param positions - x, y, z of each vertex, in the space that `matrix` takes to clip space */
export function toClip(positions: ArrayLike<number>, matrix: Matrix4): Float64Array {
  const e = matrix.elements
  const count = positions.length / 3
  const clip = new Float64Array(count * 4)
  for (let i = 0; i < count; i++) {
    const x = positions[i * 3]!
    const y = positions[i * 3 + 1]!
    const z = positions[i * 3 + 2]!
    for (let row = 0; row < 4; row++)
      clip[i * 4 + row] = e[row]! * x + e[row + 4]! * y + e[row + 8]! * z + e[row + 12]!
  }
  return clip
}

export function clipMeshOf(geometry: BufferGeometry, matrix: Matrix4): ClipMesh {
  const positions = geometry.getAttribute('position').array
  const index = geometry.getIndex()?.array ?? Uint32Array.from({ length: positions.length / 3 }, (_, i) => i)
  return { clip: toClip(positions, matrix), index }
}

/** Visits the triangles `[firstIndex, firstIndex + indexCount)`, cut at the near plane. */
export function visitTriangles(
  mesh: ClipMesh,
  firstIndex: number,
  indexCount: number,
  visit: TriangleVisitor,
): void {
  const { clip, index } = mesh
  for (let i = firstIndex; i < firstIndex + indexCount; i += 3) {
    const [a, b, c] = [index[i]! * 4, index[i + 1]! * 4, index[i + 2]! * 4]
    const behind =
      Number(clip[a + 3]! < cameraNearM) +
      Number(clip[b + 3]! < cameraNearM) +
      Number(clip[c + 3]! < cameraNearM)
    if (behind === 3) continue
    if (behind === 0) visit(cornerAt(clip, a), cornerAt(clip, b), cornerAt(clip, c))
    else
      visitCut(
        [a, b, c].map((at) => clip.subarray(at, at + 4)),
        visit,
      )
  }
}

/** Sutherland-Hodgman against the plane `w = near`. */
function visitCut(corners: readonly Float64Array[], visit: TriangleVisitor): void {
  const kept: Corner[] = []
  corners.forEach((from, i) => {
    const to = corners[(i + 1) % corners.length]!
    const [fromW, toW] = [from[3]!, to[3]!]
    if (fromW >= cameraNearM) kept.push(cornerAt(from, 0))
    if (fromW >= cameraNearM === toW >= cameraNearM) return
    const share = (cameraNearM - fromW) / (toW - fromW)
    kept.push(
      cornerAt(
        from.map((value, axis) => value + share * (to[axis]! - value)),
        0,
      ),
    )
  })
  for (let i = 1; i + 1 < kept.length; i++) visit(kept[0]!, kept[i]!, kept[i + 1]!)
}

function cornerAt(clip: Float64Array, at: number): Corner {
  const w = clip[at + 3]!
  return [
    ((clip[at]! / w + 1) / 2) * pictureWidthPx,
    ((1 - clip[at + 1]! / w) / 2) * pictureHeightPx,
    clip[at + 2]! / w,
  ]
}
