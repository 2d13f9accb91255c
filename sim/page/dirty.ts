import { Box3, type Object3D, type PerspectiveCamera, Vector3, type Vector4 } from 'three'
import { isMesh } from '../geometry/solid.js'
import { type SimWorld } from '../world/world.js'

/** A part of a target, WebGL's way: pixels, origin bottom left. */
export interface Region {
  x1: number
  y1: number
  x2: number
  y2: number
}

const marginPx = 6
/** How far the dimness under a body reaches on the ground. */
const contactM = 0.5

/** A moving thing and the part of the picture that it and its shadow cover. */
export interface Covered extends Region {
  readonly object: Object3D
}

/** What every moving thing covers; things outside the picture are left out. */
export function coveredBy(
  world: SimWorld,
  camera: PerspectiveCamera,
  key: Vector4,
  widthPx: number,
  heightPx: number,
): Covered[] {
  return boundsOfMoving(world)
    .map(({ object, bounds }) => ({ object, ...regionOf(bounds, camera, key, widthPx, heightPx) }))
    .filter(({ x1, y1, x2, y2 }) => x2 > x1 && y2 > y1)
}

export function touch(a: Region, b: Region): boolean {
  return a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2
}

function boundsOfMoving(world: SimWorld): { object: Object3D; bounds: Box3 }[] {
  const people = world.people.map(({ body }) => ({
    object: body.mesh,
    bounds: new Box3().setFromArray(body.position),
  }))
  const machines = world.machines.map(({ machine }) => {
    const bounds = new Box3()
    machine.group.traverse((object) => {
      if (!isMesh(object)) return
      if (object.geometry.boundingBox === null) object.geometry.computeBoundingBox()
      bounds.union((object.geometry.boundingBox ?? new Box3()).clone().applyMatrix4(object.matrixWorld))
    })
    return { object: machine.group, bounds }
  })
  return [...people, ...machines]
}

function regionOf(
  bounds: Box3,
  camera: PerspectiveCamera,
  key: Vector4,
  widthPx: number,
  heightPx: number,
): Region {
  const region: Region = { x1: Infinity, y1: Infinity, x2: -Infinity, y2: -Infinity }
  const eye = new Vector3()
  let behind = false
  const include = (point: Vector3): void => {
    behind ||= eye.copy(point).applyMatrix4(camera.matrixWorldInverse).z > -camera.near
    eye.applyMatrix4(camera.projectionMatrix)
    region.x1 = Math.min(region.x1, ((eye.x + 1) / 2) * widthPx)
    region.x2 = Math.max(region.x2, ((eye.x + 1) / 2) * widthPx)
    region.y1 = Math.min(region.y1, ((eye.y + 1) / 2) * heightPx)
    region.y2 = Math.max(region.y2, ((eye.y + 1) / 2) * heightPx)
  }
  for (const x of [bounds.min.x, bounds.max.x])
    for (const y of [bounds.min.y, bounds.max.y])
      for (const z of [bounds.min.z, bounds.max.z]) {
        const corner = new Vector3(x, y, z)
        include(corner)
        include(shadowOf(corner, key))
      }
  for (const x of [bounds.min.x - contactM, bounds.max.x + contactM])
    for (const z of [bounds.min.z - contactM, bounds.max.z + contactM]) include(new Vector3(x, 0, z))
  if (behind) return { x1: 0, y1: 0, x2: widthPx, y2: heightPx }
  return {
    x1: Math.max(0, Math.floor(region.x1) - marginPx),
    y1: Math.max(0, Math.floor(region.y1) - marginPx),
    x2: Math.min(widthPx, Math.ceil(region.x2) + marginPx),
    y2: Math.min(heightPx, Math.ceil(region.y2) + marginPx),
  }
}

/** The same projection onto the ground as the shader's in shadows.ts. */
function shadowOf(p: Vector3, key: Vector4): Vector3 {
  const way =
    key.w > 0.5 ? new Vector3(key.x - p.x, key.y - p.y, key.z - p.z) : new Vector3(key.x, key.y, key.z)
  const drop = Math.max(p.y, 0) / Math.max(way.y, 0.25)
  return new Vector3(p.x - way.x * drop, 0, p.z - way.z * drop)
}

/** Drawing a region once more costs about as much as this many pixels. */
const regionCostPx = 12_000

/** Joins regions where one drawing of both is cheaper than two; overlaps are drawn twice, to the same effect. */
export function joined(regions: readonly Region[]): Region[] {
  const list: Region[] = regions.map(({ x1, y1, x2, y2 }) => ({ x1, y1, x2, y2 }))
  for (let i = 0; i < list.length; i++) {
    for (let j = i + 1; j < list.length; j++) {
      const [a, b] = [list[i], list[j]]
      if (a === undefined || b === undefined) continue
      const both = {
        x1: Math.min(a.x1, b.x1),
        y1: Math.min(a.y1, b.y1),
        x2: Math.max(a.x2, b.x2),
        y2: Math.max(a.y2, b.y2),
      }
      if (areaOf(both) > areaOf(a) + areaOf(b) + regionCostPx) continue
      list[i] = both
      list.splice(j, 1)
      i = -1
      break
    }
  }
  return list
}

function areaOf({ x1, y1, x2, y2 }: Region): number {
  return (x2 - x1) * (y2 - y1)
}
