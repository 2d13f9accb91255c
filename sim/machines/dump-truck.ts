import { Group } from 'three'
import { Solids } from '../geometry/solid.js'
import { Random } from '../world/random.js'
import { type Machine, linkOf } from './machine.js'
import { addWheels } from './wheels.js'

const dark = 0x222426

/** A three-axle tipper, 8 m long, loaded with earth, its cab towards +z; `liftM` tips the bed. */
export function dumpTruck(hex = 0xc8871e): Machine {
  const group = new Group()
  linkOf(group, chassis(), 'chassis')
  linkOf(group, cab(hex), 'cab')
  const bed = linkOf(group, bedSolids(hex), 'bed')
  bed.position.set(0, 1.3, -3.6)
  const roll = addWheels(group, {
    radiusM: 0.62,
    hex: 0x8f9194,
    axles: [
      { zM: 2.55, halfTrackM: 1, widthM: 0.36 },
      { zM: -1.45, halfTrackM: 1, widthM: 0.66 },
      { zM: -2.8, halfTrackM: 1, widthM: 0.66 },
    ],
  })
  return {
    group,
    halfWidthM: 1.3,
    halfLengthM: 4,
    centreZM: 0,
    pose: ({ drivenM, liftM }) => {
      bed.rotation.x = -Math.min(0.8, liftM * 0.3)
      roll(drivenM)
    },
  }
}

function chassis(): Solids {
  const s = new Solids()
  for (const x of [-0.45, 0.45]) s.box('metal', dark, [0.16, 0.34, 7.2], { at: [x, 0.98, -0.1] })
  s.cylinder('metal', 0x808386, 0.32, 0.9, { at: [0.85, 0.85, 0.8], turnDeg: [90, 0, 0] })
  s.box('metal', 0x3a3b3d, [0.5, 0.55, 0.8], { at: [-0.9, 0.85, 0.8] })
  for (const x of [-1.0, 1.0]) s.rounded('paint', dark, [0.5, 0.08, 2.8], { at: [x, 1.3, -2.1] }, 0.03)
  return s
}

function cab(hex: number): Solids {
  const s = new Solids()
  s.plate(
    'paint',
    hex,
    [
      [1.65, 0.7],
      [3.95, 0.7],
      [3.98, 1.75],
      [3.75, 2.9],
      [1.7, 2.95],
    ],
    2.3,
    { turnDeg: [0, -90, 0] },
  )
  s.box('glass', 0x25303a, [2.06, 0.95, 0.03], { at: [0, 2.3, 3.88], turnDeg: [-11, 0, 0] })
  for (const side of [-1, 1]) {
    s.box('glass', 0x25303a, [0.03, 0.75, 1.1], { at: [side * 1.166, 2.35, 3.0] })
    s.rounded('paint', dark, [0.18, 0.5, 0.1], { at: [side * 1.36, 2.35, 3.75] }, 0.04)
    s.rounded('glow', 0xf4f1e2, [0.4, 0.2, 0.08], { at: [side * 0.8, 1.0, 3.97] }, 0.03)
  }
  s.rounded('paint', dark, [2.34, 0.45, 0.2], { at: [0, 0.62, 3.98] }, 0.06)
  for (const y of [1.3, 1.45, 1.6]) s.box('metal', dark, [1.5, 0.06, 0.05], { at: [0, y, 4.0] })
  s.cylinder('metal', 0x6d6f72, 0.09, 1.6, { at: [0.95, 2.3, 1.5] })
  return s
}

/** Its hinge is the origin: the lower rear edge. */
function bedSolids(hex: number): Solids {
  const s = new Solids()
  s.box('metal', dark, [2.2, 0.16, 5.0], { at: [0, 0.1, 2.5] })
  for (const side of [-1, 1]) {
    s.box('paint', hex, [0.08, 1.35, 5.0], { at: [side * 1.2, 0.8, 2.5] })
    for (let z = 0.15; z < 5; z += 0.6) s.box('paint', hex, [0.1, 1.3, 0.12], { at: [side * 1.27, 0.8, z] })
    s.box('paint', hex, [0.16, 0.12, 5.1], { at: [side * 1.22, 1.5, 2.5] })
  }
  s.box('paint', hex, [2.4, 1.25, 0.08], { at: [0, 0.78, 0.02], turnDeg: [6, 0, 0] })
  s.box('paint', hex, [2.4, 1.7, 0.1], { at: [0, 1.0, 5.0] })
  s.box('paint', hex, [2.4, 0.08, 1.0], { at: [0, 1.85, 5.45], turnDeg: [-6, 0, 0] })
  const random = new Random('load')
  for (let i = 0; i < 26; i++)
    s.ball('dirt', random.pick([0x6d5a44, 0x5a4b3b, 0x7d6b55]), random.between(0.3, 0.62), {
      at: [random.between(-0.7, 0.7), random.between(1.1, 1.6), random.between(0.6, 4.4)],
    })
  return s
}
