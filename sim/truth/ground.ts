import { type MachineModel, type SimWorld } from '../world/world.js'
import { type ZoneSpec } from '../scenario/schema.js'

/** Even-odd rule; the edge itself may fall on either side. */
export function insideZone(zone: ZoneSpec, x: number, z: number): boolean {
  let inside = false
  zone.polygonM.forEach(([ax, az], i) => {
    const [bx, bz] = zone.polygonM[(i + 1) % zone.polygonM.length] ?? [ax, az]
    if (az > z !== bz > z && x < ((bx - ax) * (z - az)) / (bz - az) + ax) inside = !inside
  })
  return inside
}

export function zonesAt(world: SimWorld, x: number, z: number): string[] {
  return world.zones.filter((zone) => insideZone(zone, x, z)).map(({ id }) => id)
}

/** Metres from a ground point to the machine's outline, 0 inside it. */
export function distanceToMachineM(
  world: SimWorld,
  model: MachineModel,
  frame: number,
  x: number,
  z: number,
): number {
  const state = world.machineAt(model, frame)
  const { halfWidthM, halfLengthM, centreZM } = model.machine
  const [sin, cos] = [Math.sin(state.headingRad), Math.cos(state.headingRad)]
  const [dx, dz] = [x - state.x, z - state.z]
  const across = Math.max(0, Math.abs(dx * cos - dz * sin) - halfWidthM)
  const along = Math.max(0, Math.abs(dx * sin + dz * cos - centreZM) - halfLengthM)
  return Math.hypot(across, along)
}
