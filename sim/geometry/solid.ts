import {
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  Color,
  CylinderGeometry,
  Euler,
  ExtrudeGeometry,
  Matrix4,
  Mesh,
  type Object3D,
  Quaternion,
  Shape,
  SphereGeometry,
  Vector3,
} from 'three'
import { RoundedBoxGeometry } from 'three/examples/jsm/geometries/RoundedBoxGeometry.js'
import { mergeGeometries } from 'three/examples/jsm/utils/BufferGeometryUtils.js'

/** What a surface is made of; the page has one texture for each. */
export const surfaces = [
  'paint',
  'metal',
  'concrete',
  'asphalt',
  'brick',
  'corrugated',
  'wood',
  'dirt',
  'rubber',
  'glass',
  'cloth',
  'glow',
  'grass',
  'mesh',
] as const
export type Surface = (typeof surfaces)[number]

export interface Placement {
  /** Centre, metres. */
  readonly at?: readonly [number, number, number]
  /** Turns about x, y, z in degrees, in this order of axes. */
  readonly turnDeg?: readonly [number, number, number]
}

/** Metres that one repeat of a texture covers. */
export const textureSizeM: Readonly<Record<Surface, number>> = {
  paint: 1.7,
  metal: 1.1,
  concrete: 4,
  asphalt: 3.5,
  brick: 1.6,
  corrugated: 1.2,
  wood: 1.2,
  dirt: 5,
  rubber: 0.8,
  glass: 2,
  cloth: 1,
  glow: 1,
  grass: 3,
  mesh: 0.5,
}

/** Collects coloured solids by surface and merges them, so that a whole site is a dozen draws. */
export class Solids {
  readonly #parts = new Map<Surface, BufferGeometry[]>()

  box(
    surface: Surface,
    hex: number,
    size: readonly [number, number, number],
    placement: Placement = {},
  ): this {
    return this.add(surface, hex, new BoxGeometry(...size), placement)
  }

  /** A box with rounded edges, which catch the light as real sheet metal does. */
  rounded(
    surface: Surface,
    hex: number,
    size: readonly [number, number, number],
    placement: Placement = {},
    radiusM = 0.04,
  ): this {
    return this.add(
      surface,
      hex,
      new RoundedBoxGeometry(...size, 2, Math.min(radiusM, ...size.map((side) => side / 2.01))),
      placement,
    )
  }

  /** Upright unless turned. */
  cylinder(
    surface: Surface,
    hex: number,
    radius: number,
    height: number,
    placement: Placement = {},
    topRadius = radius,
    around = 18,
  ): this {
    return this.add(surface, hex, new CylinderGeometry(topRadius, radius, height, around), placement)
  }

  ball(surface: Surface, hex: number, radius: number, placement: Placement = {}): this {
    return this.add(surface, hex, new SphereGeometry(radius, 14, 10), placement)
  }

  /** A plate cut from an outline in the x-y plane, `thickness` along z, centred. */
  plate(
    surface: Surface,
    hex: number,
    outline: readonly (readonly [number, number])[],
    thickness: number,
    placement: Placement = {},
  ): this {
    const shape = new Shape()
    outline.forEach(([x, y], i) => (i === 0 ? shape.moveTo(x, y) : shape.lineTo(x, y)))
    const geometry = new ExtrudeGeometry(shape, {
      depth: thickness,
      bevelEnabled: true,
      bevelSize: 0.01,
      bevelThickness: 0.01,
      bevelSegments: 1,
    })
    geometry.translate(0, 0, -thickness / 2)
    return this.add(surface, hex, geometry, placement)
  }

  /** A round bar between two points. */
  bar(
    surface: Surface,
    hex: number,
    from: readonly [number, number, number],
    to: readonly [number, number, number],
    radius: number,
    around = 8,
  ): this {
    const a = new Vector3(...from)
    const b = new Vector3(...to)
    const geometry = new CylinderGeometry(radius, radius, a.distanceTo(b), around)
    const turn = new Quaternion().setFromUnitVectors(new Vector3(0, 1, 0), b.clone().sub(a).normalize())
    geometry.applyMatrix4(
      new Matrix4().compose(a.clone().add(b).multiplyScalar(0.5), turn, new Vector3(1, 1, 1)),
    )
    return this.add(surface, hex, geometry)
  }

  add(surface: Surface, hex: number, geometry: BufferGeometry, placement: Placement = {}): this {
    const [tx, ty, tz] = placement.turnDeg ?? [0, 0, 0]
    const turn = new Quaternion().setFromEuler(
      new Euler((tx * Math.PI) / 180, (ty * Math.PI) / 180, (tz * Math.PI) / 180),
    )
    geometry.applyMatrix4(
      new Matrix4().compose(new Vector3(...(placement.at ?? [0, 0, 0])), turn, new Vector3(1, 1, 1)),
    )
    const list = this.#parts.get(surface) ?? []
    list.push(dressed(geometry, hex, textureSizeM[surface]))
    this.#parts.set(surface, list)
    return this
  }

  /** One mesh per surface, named after it. */
  meshes(): Mesh[] {
    return [...this.#parts].map(([surface, list]) => {
      const mesh = new Mesh(mergeGeometries(list, false))
      mesh.name = surface
      return mesh
    })
  }
}

/** Flat triangles with colour and a texture laid on by the dominant direction of the face. */
function dressed(source: BufferGeometry, hex: number, sizeM: number): BufferGeometry {
  const flat = source.getIndex() === null ? source : source.toNonIndexed()
  const position = flat.getAttribute('position')
  const normal = flat.getAttribute('normal')
  const geometry = new BufferGeometry()
  const uv = new Float32Array(position.count * 2)
  const colors = new Float32Array(position.count * 3)
  const color = new Color(hex)
  const face = new Vector3()
  const edge = new Vector3()
  const corner = new Vector3()
  for (let i = 0; i < position.count; i++) {
    if (i % 3 === 0) {
      corner.fromBufferAttribute(position, i)
      face.fromBufferAttribute(position, i + 1).sub(corner)
      edge.fromBufferAttribute(position, i + 2).sub(corner)
      face.cross(edge)
    }
    const [x, y, z] = [position.getX(i) / sizeM, position.getY(i) / sizeM, position.getZ(i) / sizeM]
    const [ax, ay, az] = [Math.abs(face.x), Math.abs(face.y), Math.abs(face.z)]
    uv.set(ay >= ax && ay >= az ? [x, z] : ax > az ? [z, y] : [x, y], i * 2)
    color.toArray(colors, i * 3)
  }
  geometry.setAttribute('position', new BufferAttribute(new Float32Array(position.array), 3))
  geometry.setAttribute('normal', new BufferAttribute(new Float32Array(normal.array), 3))
  geometry.setAttribute('uv', new BufferAttribute(uv, 2))
  geometry.setAttribute('color', new BufferAttribute(colors, 3))
  return geometry
}

/** `instanceof Mesh`, without the loose types that it narrows to. */
export function isMesh(object: Object3D): object is Mesh {
  return object instanceof Mesh
}
