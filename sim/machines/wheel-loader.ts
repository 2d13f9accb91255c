import { Group } from 'three'
import { Solids } from '../geometry/solid.js'
import { type Machine, linkOf } from './machine.js'
import { addWheels } from './wheels.js'

const dark = 0x26282b

/** A wheel loader, 7 m long with its bucket, which is towards +z; `liftM` raises the arms. */
export function wheelLoader(hex = 0xe0a11c): Machine {
  const group = new Group()
  linkOf(group, rear(hex), 'rear')
  linkOf(group, front(hex), 'front')
  const arms = linkOf(group, armSolids(hex), 'arms')
  arms.position.set(0, 1.75, 0.85)
  const bucket = linkOf(arms, bucketSolids(), 'bucket')
  bucket.position.set(0, -1.2, 2.35)
  const roll = addWheels(group, {
    radiusM: 0.78,
    hex,
    axles: [
      { zM: -1.55, halfTrackM: 1.05, widthM: 0.55 },
      { zM: 1.45, halfTrackM: 1.05, widthM: 0.55 },
    ],
  })
  return {
    group,
    halfWidthM: 1.4,
    halfLengthM: 3.5,
    centreZM: 0.5,
    pose: ({ drivenM, liftM }) => {
      arms.rotation.x = -Math.min(0.95, liftM * 0.42)
      bucket.rotation.x = -0.1 - liftM * 0.12
      roll(drivenM)
    },
  }
}

function rear(hex: number): Solids {
  const s = new Solids()
  s.rounded('paint', hex, [1.6, 1.0, 2.1], { at: [0, 1.55, -1.75] }, 0.16)
  s.rounded('paint', dark, [1.5, 0.95, 0.5], { at: [0, 1.2, -2.7] }, 0.14)
  s.box('metal', dark, [1.4, 0.5, 2.6], { at: [0, 0.9, -1.4] })
  for (let y = 1.25; y <= 1.85; y += 0.12) s.box('metal', 0x3b3d40, [1.62, 0.04, 0.9], { at: [0, y, -2.05] })
  s.cylinder('metal', 0x35373a, 0.07, 0.6, { at: [0.4, 2.3, -1.9] })
  for (const x of [-1.05, 1.05]) s.rounded('paint', hex, [0.66, 0.12, 1.5], { at: [x, 1.68, -1.55] }, 0.05)
  s.rounded('paint', hex, [1.5, 0.6, 1.4], { at: [0, 1.5, -0.2] }, 0.06)
  s.rounded('glass', 0x25303a, [1.4, 1.2, 1.35], { at: [0, 2.35, -0.15] }, 0.08)
  s.rounded('paint', hex, [1.56, 0.14, 1.6], { at: [0, 3.0, -0.15] }, 0.06)
  for (const x of [-0.7, 0.7])
    for (const z of [-0.82, 0.52]) s.box('paint', dark, [0.08, 1.25, 0.08], { at: [x, 2.35, z] })
  for (const x of [-0.55, 0.55]) s.box('glow', 0xfff2d2, [0.2, 0.14, 0.06], { at: [x, 3.02, 0.68] })
  for (let y = 0.6; y <= 1.5; y += 0.3) s.box('metal', dark, [0.3, 0.05, 0.4], { at: [0.95, y, -0.2] })
  return s
}

function front(hex: number): Solids {
  const s = new Solids()
  s.rounded('paint', hex, [1.1, 0.75, 1.7], { at: [0, 1.0, 1.2] }, 0.08)
  s.box('metal', dark, [0.5, 0.5, 0.8], { at: [0, 0.9, 0.25] })
  for (const x of [-0.4, 0.4])
    s.plate(
      'paint',
      hex,
      [
        [0.5, 1.1],
        [1.6, 1.0],
        [1.3, 1.7],
        [0.9, 1.95],
        [0.6, 1.8],
      ],
      0.12,
      { at: [x, 0, 0], turnDeg: [0, -90, 0] },
    )
  for (const x of [-1.05, 1.05]) s.rounded('paint', hex, [0.6, 0.1, 1.3], { at: [x, 1.66, 1.45] }, 0.04)
  return s
}

function armSolids(hex: number): Solids {
  const s = new Solids()
  for (const x of [-0.55, 0.55]) {
    s.plate(
      'paint',
      hex,
      [
        [-0.1, -0.15],
        [1.2, -0.35],
        [2.4, -1.4],
        [2.55, -1.1],
        [1.35, 0.1],
        [-0.1, 0.18],
      ],
      0.16,
      { at: [x, 0, 0], turnDeg: [0, -90, 0] },
    )
    s.bar('metal', 0xb9bcc0, [x * 0.8, -0.8, 0.3], [x * 0.8, -0.35, 1.2], 0.06)
  }
  s.bar('metal', dark, [0, 0.1, 0.1], [0, 0.35, 1.1], 0.1)
  s.bar('metal', 0xb9bcc0, [0, 0.35, 1.1], [0, -0.3, 2.1], 0.06)
  s.box('paint', hex, [1.1, 0.2, 0.25], { at: [0, -0.55, 1.55] })
  return s
}

function bucketSolids(): Solids {
  const s = new Solids()
  s.plate(
    'metal',
    0x6a6257,
    [
      [0.0, 0.55],
      [0.25, 0.6],
      [0.1, -0.1],
      [0.95, -0.42],
      [1.0, -0.5],
      [0.0, -0.5],
      [-0.15, -0.2],
    ],
    2.75,
    { turnDeg: [0, -90, 0] },
  )
  for (const x of [-1.36, 1.36])
    s.plate(
      'metal',
      0x575047,
      [
        [0.0, 0.55],
        [0.3, 0.6],
        [0.95, -0.42],
        [0.0, -0.5],
        [-0.15, -0.2],
      ],
      0.05,
      { at: [x, 0, 0], turnDeg: [0, -90, 0] },
    )
  for (let x = -1.2; x <= 1.21; x += 0.3) s.box('metal', 0x8a8378, [0.1, 0.06, 0.3], { at: [x, -0.47, 1.08] })
  return s
}
