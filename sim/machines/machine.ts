import { Group, type Object3D } from 'three'
import { type MachineKind } from '../scenario/schema.js'
import { type Solids } from '../geometry/solid.js'

/** What moves in a machine, besides its place. */
export interface MachinePose {
  readonly timeS: number
  readonly drivenM: number
  readonly liftM: number
  readonly running: boolean
}

/**
 * A machine stands at its group's origin, its front towards +z. `halfWidthM` and `halfLengthM` are its outline on the
 * ground for "near"; `centreZM` shifts that outline along its length.
 */
export interface Machine {
  readonly group: Group
  readonly halfWidthM: number
  readonly halfLengthM: number
  readonly centreZM: number
  pose(pose: MachinePose): void
}

export type MachineBuilder = (hex: number | undefined) => Machine

export function linkOf(parent: Object3D, solids: Solids, name: string): Group {
  const link = new Group()
  link.name = name
  link.add(...solids.meshes())
  parent.add(link)
  return link
}

/** `machinery` are work machines, `vehicle` what also drives on roads. */
export const machineClass: Readonly<Record<MachineKind, 'machinery' | 'vehicle'>> = {
  forklift: 'machinery',
  excavator: 'machinery',
  press: 'machinery',
  crane: 'machinery',
  'wheel-loader': 'machinery',
  'dump-truck': 'machinery',
  truck: 'vehicle',
}
