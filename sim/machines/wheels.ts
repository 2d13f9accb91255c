import { type Group } from 'three'
import { Solids } from '../geometry/solid.js'
import { linkOf } from './machine.js'

/** A pair of wheels, one on either side. */
export interface Axle {
  readonly zM: number
  readonly halfTrackM: number
  readonly widthM: number
}

/** Puts wheels of a work machine under it, their rims in `hex`. @returns what rolls them to the way driven, metres. */
export function addWheels(
  group: Group,
  { radiusM, hex, axles }: Readonly<{ radiusM: number; hex: number; axles: readonly Axle[] }>,
): (drivenM: number) => void {
  const wheels = axles.flatMap(({ zM, halfTrackM, widthM }) =>
    [-halfTrackM, halfTrackM].map((x) => {
      const wheel = linkOf(group, bigWheel(radiusM, widthM, hex), 'wheel')
      wheel.position.set(x, radiusM, zM)
      return wheel
    }),
  )
  return (drivenM) => {
    for (const wheel of wheels) wheel.rotation.x = drivenM / radiusM
  }
}

/** Its axle along x: treads, a rim, a hub. */
function bigWheel(radiusM: number, widthM: number, hex: number): Solids {
  const s = new Solids()
  s.cylinder('rubber', 0x1d1d1e, radiusM, widthM, { turnDeg: [0, 0, 90] }, radiusM, 26)
  for (let angle = 0; angle < 360; angle += 18)
    s.box('rubber', 0x2a2928, [widthM * 1.02, 0.08, 0.12], treadAt(angle, radiusM))
  s.cylinder('paint', hex, radiusM * 0.5, widthM + 0.03, { turnDeg: [0, 0, 90] }, radiusM * 0.5, 18)
  s.cylinder('metal', 0x4a4c4f, radiusM * 0.22, widthM + 0.08, { turnDeg: [0, 0, 90] }, radiusM * 0.22, 12)
  return s
}

function treadAt(angleDeg: number, radiusM: number) {
  const angle = (angleDeg * Math.PI) / 180
  return {
    at: [0, Math.cos(angle) * radiusM, Math.sin(angle) * radiusM] as const,
    turnDeg: [angleDeg, 0, 0] as const,
  }
}
