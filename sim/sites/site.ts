import { type Object3D } from 'three'
import { type CameraSpec, type SiteName, type ZoneSpec } from '../scenario/schema.js'

/** A lamp that shines at dusk and night (or always, indoors); metres, candela-like strength. */
export interface Lamp {
  readonly at: readonly [number, number, number]
  readonly hex: number
  readonly strength: number
}

/** Where nothing moves: geometry, the fixed camera, the zones and the lamps of one place. */
export interface Site {
  readonly name: SiteName
  readonly indoor: boolean
  readonly meshes: readonly Object3D[]
  readonly camera: CameraSpec
  readonly zones: readonly ZoneSpec[]
  readonly lamps: readonly Lamp[]
  /** From where the sun shines, not normalised. */
  readonly sunFrom: readonly [number, number, number]
  /** Open ground on which random people may be placed, metres [x, z]. */
  readonly groundM: { readonly fromM: readonly [number, number]; readonly toM: readonly [number, number] }
}
