import { Solids } from '../geometry/solid.js'

/** A wheel of a work machine, its axle along x: treads, a rim in the machine's colour, a hub. */
export function bigWheel(radiusM: number, widthM: number, hex: number): Solids {
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
