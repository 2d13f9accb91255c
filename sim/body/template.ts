import {
  BufferAttribute,
  type BufferGeometry,
  Color,
  LatheGeometry,
  SphereGeometry,
  Vector2,
  Vector3,
} from 'three'
import { mergeGeometries } from 'three/examples/jsm/utils/BufferGeometryUtils.js'

/** Places a tile of the person atlas; see atlas.ts. */
export type Tile = 'cloth' | 'vest-yellow' | 'vest-orange' | 'face'
export const tileOrigin: Readonly<Record<Tile, readonly [number, number]>> = {
  cloth: [0, 0],
  'vest-yellow': [0.5, 0],
  face: [0, 0.5],
  'vest-orange': [0.5, 0.5],
}

export function tileUv(tile: Tile, u: number, v: number): [number, number] {
  const [originU, originV] = tileOrigin[tile]
  const inset = (share: number): number => 0.01 + 0.48 * share
  return [originU + inset(u - Math.floor(u)), originV + inset(Math.min(1, Math.max(0, v)))]
}

/** Paints every vertex and maps the whole geometry to one tile. Returns its argument. */
export function painted(geometry: BufferGeometry, hex: number, tile: Tile = 'cloth'): BufferGeometry {
  const count = geometry.getAttribute('position').count
  const color = new Color(hex)
  const colors = new Float32Array(count * 3)
  for (let i = 0; i < count; i++) color.toArray(colors, i * 3)
  geometry.setAttribute('color', new BufferAttribute(colors, 3))
  const uv = geometry.getAttribute('uv')
  for (let i = 0; i < count; i++) uv.setXY(i, ...tileUv(tile, uv.getX(i) * 0.999, uv.getY(i)))
  return geometry
}

/** Moves every vertex by `of`, which edits its argument in place. */
export function bent(geometry: BufferGeometry, of: (point: Vector3) => void): BufferGeometry {
  const position = geometry.getAttribute('position')
  const point = new Vector3()
  for (let i = 0; i < position.count; i++) {
    point.fromBufferAttribute(position, i)
    of(point)
    position.setXYZ(i, point.x, point.y, point.z)
  }
  return geometry
}

/** Turns triangles so that the closed surface faces outwards, then computes its normals. */
export function outward(geometry: BufferGeometry): BufferGeometry {
  const position = geometry.getAttribute('position')
  const index = geometry.getIndex()
  if (index === null) throw new TypeError('an indexed geometry is needed')
  const [a, b, c] = [new Vector3(), new Vector3(), new Vector3()]
  let volume = 0
  for (let i = 0; i < index.count; i += 3) {
    a.fromBufferAttribute(position, index.getX(i))
    b.fromBufferAttribute(position, index.getX(i + 1))
    c.fromBufferAttribute(position, index.getX(i + 2))
    volume += a.dot(b.cross(c))
  }
  if (volume < 0) {
    for (let i = 0; i < index.count; i += 3) {
      const second = index.getX(i + 1)
      index.setX(i + 1, index.getX(i + 2))
      index.setX(i + 2, second)
    }
  }
  geometry.computeVertexNormals()
  return geometry
}

/** A ball of the given half axes, poles up and down, u = 0.25 in front (+z) like every tube here. */
export function ball(rx: number, ry: number, rz: number, around = 16, down = 12): BufferGeometry {
  const geometry = new SphereGeometry(1, around, down)
  return bent(geometry, (p) => p.set(-p.x * rx, p.y * ry, p.z * rz))
}

/** A closed surface of revolution from `[radius, y]` points, stretched along z. */
export function turned(
  points: readonly (readonly [number, number])[],
  zScale: number,
  around = 20,
): BufferGeometry {
  const geometry = new LatheGeometry(
    points.map(([r, y]) => new Vector2(Math.max(r, 1e-4), y)),
    around,
  )
  return bent(geometry, (p) => p.setZ(p.z * zScale))
}

export function merged(parts: BufferGeometry[]): BufferGeometry {
  return mergeGeometries(parts, false)
}
