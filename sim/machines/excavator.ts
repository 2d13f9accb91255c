import { Group } from 'three'
import { Solids } from '../geometry/solid.js'
import { type Machine, linkOf } from './machine.js'

const dark = 0x26282b

/** A tracked excavator; while running it swings and digs in a slow cycle. The boom is towards +z at rest. */
export function excavator(hex = 0xe8a412): Machine {
  const group = new Group()
  linkOf(group, tracks(), 'tracks')
  const upper = linkOf(group, house(hex), 'house')
  upper.position.y = 1.0
  const boom = linkOf(upper, boomSolids(hex), 'boom')
  boom.position.set(0.1, 0.75, 1.0)
  const stick = linkOf(boom, stickSolids(hex), 'stick')
  stick.position.set(0, 1.15, 3.35)
  const bucket = linkOf(stick, bucketSolids(), 'bucket')
  bucket.position.set(0, -2.2, 0.35)
  return {
    group,
    halfWidthM: 1.4,
    halfLengthM: 2.0,
    centreZM: 0,
    pose: ({ timeS, running, liftM }) => {
      const phase = running ? timeS * 0.42 : 0
      upper.rotation.y = running ? 0.55 * Math.sin(phase) : 0
      boom.rotation.x = -0.12 + 0.2 * Math.sin(phase * 2 + 0.6) * (running ? 1 : 0) - liftM * 0.2
      stick.rotation.x = 0.25 + 0.4 * Math.sin(phase * 2 + 1.9) * (running ? 1 : 0)
      bucket.rotation.x = 0.35 + 0.6 * Math.sin(phase * 2 + 2.6) * (running ? 1 : 0)
    },
  }
}

function tracks(): Solids {
  const s = new Solids()
  for (const x of [-1.12, 1.12]) {
    s.rounded('rubber', 0x2d2a27, [0.55, 0.82, 3.7], { at: [x, 0.42, 0] }, 0.4)
    s.rounded('metal', 0x3a3530, [0.57, 0.4, 2.9], { at: [x, 0.44, 0] }, 0.19)
    for (let z = -1.6; z <= 1.6; z += 0.2)
      for (const y of [0.02, 0.82]) s.box('metal', 0x4a443d, [0.58, 0.05, 0.1], { at: [x, y, z] })
    for (let z = -1.35; z <= 1.4; z += 0.45)
      s.cylinder('metal', 0x5b544b, 0.19, 0.6, { at: [x, 0.32, z], turnDeg: [0, 0, 90] })
  }
  s.box('metal', dark, [1.8, 0.4, 1.6], { at: [0, 0.55, 0] })
  s.cylinder('metal', dark, 0.75, 0.3, { at: [0, 0.88, 0] })
  return s
}

function house(hex: number): Solids {
  const s = new Solids()
  s.rounded('paint', hex, [2.6, 0.9, 2.3], { at: [0, 0.55, -0.75] }, 0.14)
  s.rounded('paint', dark, [2.5, 1.0, 0.7], { at: [0, 0.6, -1.85] }, 0.24)
  s.rounded('paint', hex, [1.1, 0.35, 1.3], { at: [0.65, 0.95, -0.6] }, 0.08)
  s.box('metal', dark, [2.5, 0.16, 3.0], { at: [0, 0.06, -0.3] })
  s.rounded('paint', hex, [1.0, 0.5, 1.55], { at: [-0.78, 0.4, 0.55] }, 0.06)
  s.rounded('glass', 0x26313a, [0.94, 1.05, 1.45], { at: [-0.78, 1.15, 0.55] }, 0.08)
  s.rounded('paint', hex, [1.02, 0.1, 1.6], { at: [-0.78, 1.74, 0.52] }, 0.05)
  for (const [x, z] of [
    [-1.26, 1.28],
    [-0.3, 1.28],
    [-1.26, -0.18],
    [-0.3, -0.18],
  ] as const)
    s.box('paint', dark, [0.07, 1.15, 0.07], { at: [x, 1.15, z] })
  s.cylinder('metal', 0x35373a, 0.07, 0.5, { at: [0.8, 1.3, -1.3] })
  for (const x of [0.2, 1.2]) s.bar('metal', dark, [x, 1.0, -1.2], [x, 1.5, -1.2], 0.02)
  s.bar('metal', dark, [0.2, 1.5, -1.2], [1.2, 1.5, -1.2], 0.02)
  return s
}

function boomSolids(hex: number): Solids {
  const s = new Solids()
  s.plate(
    'paint',
    hex,
    [
      [0, -0.3],
      [0.3, -0.25],
      [1.9, 1.15],
      [3.5, 1.0],
      [3.5, 1.35],
      [1.7, 1.65],
      [0, 0.25],
    ],
    0.42,
    { turnDeg: [0, -90, 0] },
  )
  for (const x of [-0.3, 0.3]) {
    s.bar('metal', dark, [x, -0.35, 0.5], [x, 0.35, 1.2], 0.085)
    s.bar('metal', 0xb9bcc0, [x, 0.35, 1.2], [x, 0.85, 1.7], 0.05)
  }
  s.bar('metal', dark, [0, 1.75, 1.6], [0, 1.75, 2.6], 0.08)
  s.bar('metal', 0xb9bcc0, [0, 1.75, 2.6], [0, 1.62, 3.4], 0.045)
  return s
}

function stickSolids(hex: number): Solids {
  const s = new Solids()
  s.plate(
    'paint',
    hex,
    [
      [-0.25, 0.45],
      [0.15, 0.5],
      [0.3, -0.1],
      [0.42, -2.2],
      [0.2, -2.25],
      [-0.22, -0.2],
    ],
    0.32,
    { turnDeg: [0, -90, 0] },
  )
  s.bar('metal', dark, [0, 0.3, 0.42], [0, -0.8, 0.6], 0.07)
  s.bar('metal', 0xb9bcc0, [0, -0.8, 0.6], [0, -1.8, 0.62], 0.04)
  return s
}

function bucketSolids(): Solids {
  const s = new Solids()
  s.plate(
    'metal',
    0x4b463f,
    [
      [0.1, 0.15],
      [0.45, -0.2],
      [0.4, -0.75],
      [-0.1, -1.0],
      [-0.55, -0.85],
      [-0.2, -0.45],
    ],
    0.95,
    { turnDeg: [0, -90, 0] },
  )
  for (let x = -0.4; x <= 0.4; x += 0.2)
    s.box('metal', 0x7c756b, [0.08, 0.06, 0.28], { at: [x, -0.92, -0.6], turnDeg: [25, 0, 0] })
  return s
}
