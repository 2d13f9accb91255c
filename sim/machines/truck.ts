import { Group } from 'three'
import { Solids } from '../geometry/solid.js'
import { type Machine, linkOf } from './machine.js'

/** A two-axle box truck, 7.4 m long, its cab towards +z. */
export function truck(hex = 0x2d5d9b): Machine {
  const group = new Group()
  linkOf(group, cab(hex), 'cab')
  linkOf(group, cargo(), 'cargo')
  const wheels = [
    [-1.0, 2.35],
    [1.0, 2.35],
    [-0.98, -2.1],
    [0.98, -2.1],
  ].map(([x = 0, z = 0]) => {
    const wheel = linkOf(group, wheelSolids(z < 0 ? 0.52 : 0.3), 'wheel')
    wheel.position.set(x, 0.5, z)
    return wheel
  })
  return {
    group,
    halfWidthM: 1.25,
    halfLengthM: 3.7,
    centreZM: 0,
    pose: ({ drivenM }) => {
      for (const wheel of wheels) wheel.rotation.x = drivenM / 0.5
    },
  }
}

function cab(hex: number): Solids {
  const s = new Solids()
  s.plate(
    'paint',
    hex,
    [
      [1.5, 0.55],
      [3.68, 0.55],
      [3.7, 1.55],
      [3.42, 2.55],
      [1.5, 2.62],
    ],
    2.3,
    { turnDeg: [0, -90, 0] },
  )
  s.box('glass', 0x27323b, [2.06, 0.86, 0.03], { at: [0, 2.02, 3.585], turnDeg: [-15.6, 0, 0] })
  for (const side of [-1, 1]) {
    s.box('glass', 0x27323b, [0.03, 0.68, 1.05], { at: [side * 1.165, 2.06, 2.75] })
    s.box('paint', 0x18191b, [0.03, 0.02, 1.2], { at: [side * 1.166, 1.4, 2.7] })
    s.box('metal', 0x1a1a1a, [0.05, 0.12, 0.03], { at: [side * 1.17, 1.5, 2.25] })
    s.rounded('paint', 0x18191b, [0.2, 0.42, 0.1], { at: [side * 1.34, 2.1, 3.4] }, 0.04)
    s.rounded('glow', 0xf4f1e2, [0.42, 0.2, 0.08], { at: [side * 0.78, 0.95, 3.7] }, 0.03)
    s.rounded('paint', 0x1b1c1e, [0.1, 0.35, 1.1], { at: [side * 1.17, 0.92, 2.35] }, 0.05)
    s.box('metal', 0x3a3a3a, [0.3, 0.05, 0.45], { at: [side * 1.05, 0.45, 1.62] })
  }
  s.rounded('paint', 0x1f2123, [2.3, 0.4, 0.16], { at: [0, 0.6, 3.72] }, 0.05)
  s.rounded('paint', 0x17181a, [1.3, 0.5, 0.06], { at: [0, 1.28, 3.71] }, 0.03)
  for (const y of [1.14, 1.28, 1.42]) s.box('metal', 0x8a8d90, [1.2, 0.04, 0.04], { at: [0, y, 3.745] })
  s.box('paint', 0xf0f0ea, [0.52, 0.12, 0.02], { at: [0, 0.6, 3.81] })
  return s
}

function cargo(): Solids {
  const s = new Solids()
  s.rounded('corrugated', 0xd9d9d4, [2.46, 2.5, 5.0], { at: [0, 2.25, -1.15] }, 0.05)
  s.box('metal', 0x2a2b2d, [0.85, 0.24, 6.6], { at: [0, 0.72, -0.3] })
  s.box('metal', 0x8e9194, [2.5, 0.12, 5.04], { at: [0, 0.98, -1.15] })
  s.box('metal', 0x8e9194, [2.5, 0.1, 5.04], { at: [0, 3.5, -1.15] })
  s.box('paint', 0xbfc2c4, [2.3, 2.3, 0.06], { at: [0, 2.25, -3.67] })
  s.box('metal', 0x55585c, [0.04, 2.3, 0.05], { at: [0, 2.25, -3.71] })
  for (const side of [-1, 1]) {
    s.box('metal', 0x9a9da0, [0.04, 0.5, 2.6], { at: [side * 1.15, 0.65, 0.05] })
    s.rounded('glow', 0xb01c16, [0.26, 0.12, 0.05], { at: [side * 0.98, 0.8, -3.7] }, 0.02)
    s.rounded('paint', 0x1b1c1e, [0.5, 0.1, 1.3], { at: [side * 0.98, 1.08, -2.1] }, 0.04)
    s.box('paint', 0x2d5d9b, [0.02, 0.5, 3.6], { at: [side * 1.236, 2.4, -1.15] })
    s.cylinder('metal', 0x85888b, 0.28, 0.9, { at: [side * 0.75, 0.68, 0.9], turnDeg: [90, 0, 0] })
  }
  s.box('metal', 0x3a3b3d, [2.3, 0.12, 0.1], { at: [0, 0.5, -3.65] })
  return s
}

function wheelSolids(width: number): Solids {
  const s = new Solids()
  s.cylinder('rubber', 0x19191a, 0.5, width, { turnDeg: [0, 0, 90] }, 0.5, 24)
  s.cylinder('metal', 0xc0c2c4, 0.28, width + 0.02, { turnDeg: [0, 0, 90] }, 0.28, 16)
  s.cylinder('metal', 0x6d6f72, 0.12, width + 0.06, { turnDeg: [0, 0, 90] }, 0.12, 10)
  for (const angle of [0, 60, 120])
    s.box('metal', 0x7c7f82, [width + 0.03, 0.46, 0.05], { turnDeg: [angle, 0, 0] })
  return s
}
