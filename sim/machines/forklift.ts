import { Group } from 'three'
import { Solids } from '../geometry/solid.js'
import { type Machine, linkOf } from './machine.js'

const dark = 0x2b2d30
/** Height of the roof guard, metres. The tallest person of a scenario, in a helmet, sits below it. */
export const guardM = 2.42
/** The foot plate and where the driver's body is over it, metres in the machine's frame. */
export const footPlateM = 0.74
export const seatZM = -0.14

/** A counterbalance truck with mast, fork, roof guard, seat and a load on a pallet when raised. */
export function forklift(hex = 0xe39a16): Machine {
  const group = new Group()
  linkOf(group, body(hex), 'body')
  linkOf(group, mast(), 'mast')
  const carriage = linkOf(group, forks(), 'forks')
  const wheels = [
    [-0.48, 0.3, 0.62],
    [0.48, 0.3, 0.62],
    [-0.45, 0.25, -0.72],
    [0.45, 0.25, -0.72],
  ].map(([x = 0, radius = 0.3, z = 0]) => {
    const wheel = linkOf(group, wheelSolids(radius), 'wheel')
    wheel.position.set(x, radius, z)
    return { wheel, radius }
  })
  return {
    group,
    halfWidthM: 0.62,
    halfLengthM: 1.75,
    centreZM: 0.4,
    pose: ({ drivenM, liftM }) => {
      carriage.position.y = liftM
      for (const { wheel, radius } of wheels) wheel.rotation.x = drivenM / radius
    },
  }
}

function body(hex: number): Solids {
  const s = new Solids()
  s.rounded('paint', hex, [1.05, 0.42, 1.5], { at: [0, 0.56, -0.05] }, 0.08)
  s.rounded('paint', dark, [1.0, 0.78, 0.55], { at: [0, 0.72, -0.95] }, 0.14)
  s.rounded('paint', hex, [0.98, 0.32, 0.85], { at: [0, 0.98, -0.62] }, 0.08)
  s.rounded('paint', hex, [0.96, 0.55, 0.18], { at: [0, 0.95, 0.62], turnDeg: [-8, 0, 0] }, 0.05)
  s.rounded('cloth', 0x1c1c1e, [0.5, 0.14, 0.5], { at: [0, 1.14, -0.45] }, 0.05)
  s.rounded('cloth', 0x1c1c1e, [0.48, 0.5, 0.12], { at: [0, 1.4, -0.72], turnDeg: [-10, 0, 0] }, 0.05)
  for (const x of [-0.47, 0.47]) {
    s.bar('metal', dark, [x, 0.95, 0.66], [x * 0.94, guardM, 0.3], 0.035)
    s.bar('metal', dark, [x, 1.1, -0.9], [x * 0.94, guardM, -0.7], 0.04)
    s.bar('metal', dark, [x * 0.94, guardM, 0.34], [x * 0.94, guardM, -0.74], 0.04)
  }
  for (let z = -0.7; z <= 0.32; z += 0.17)
    s.bar('metal', dark, [-0.44, guardM + 0.01, z], [0.44, guardM + 0.01, z], 0.022)
  s.bar('metal', dark, [0, 1.1, 0.55], [0, 1.42, 0.12], 0.025)
  s.cylinder('rubber', 0x151515, 0.17, 0.03, { at: [0, 1.43, 0.11], turnDeg: [-35, 0, 0] })
  s.cylinder('glow', 0xff8c1a, 0.06, 0.12, { at: [0.3, guardM + 0.09, -0.65] })
  for (const x of [-0.36, 0.36])
    s.cylinder('glow', 0xfff4d8, 0.06, 0.05, { at: [x, 1.9, 0.44], turnDeg: [90, 0, 0] })
  s.box('paint', 0x151515, [0.62, 0.12, 0.02], { at: [0, 0.92, -1.235] })
  return s
}

function mast(): Solids {
  const s = new Solids()
  for (const x of [-0.32, 0.32]) s.box('metal', dark, [0.09, 2.3, 0.14], { at: [x, 1.23, 0.92] })
  for (const x of [-0.22, 0.22]) s.box('metal', 0x4a4d52, [0.06, 2.25, 0.1], { at: [x, 1.25, 0.94] })
  for (const y of [0.35, 1.2, 2.32]) s.box('metal', dark, [0.7, 0.1, 0.08], { at: [0, y, 0.88] })
  s.cylinder('metal', 0x9aa0a6, 0.045, 2.0, { at: [0, 1.2, 0.9] })
  return s
}

function forks(): Solids {
  const s = new Solids()
  for (const y of [0.3, 0.62]) s.box('metal', dark, [0.98, 0.1, 0.06], { at: [0, y, 1.03] })
  for (const x of [-0.45, -0.15, 0.15, 0.45])
    s.box('metal', dark, [0.035, 0.75, 0.035], { at: [x, 0.78, 1.02] })
  for (const x of [-0.27, 0.27]) {
    s.box('metal', 0x55585c, [0.11, 0.55, 0.05], { at: [x, 0.36, 1.08] })
    s.box('metal', 0x55585c, [0.11, 0.045, 1.05], { at: [x, 0.1, 1.58] })
  }
  return s
}

function wheelSolids(radius: number): Solids {
  const s = new Solids()
  s.cylinder('rubber', 0x1a1a1a, radius, 0.2, { turnDeg: [0, 0, 90] }, radius, 22)
  s.cylinder('metal', 0xb5b2a8, radius * 0.55, 0.22, { turnDeg: [0, 0, 90] }, radius * 0.55, 14)
  for (const angle of [0, 120, 240])
    s.box('metal', 0x77736a, [0.225, radius * 0.9, 0.05], { turnDeg: [angle, 0, 0] })
  return s
}
