import { Group } from 'three'
import { Solids } from '../geometry/solid.js'
import { type Machine, linkOf } from './machine.js'

/** A mobile crane with a telescopic jib; while running the jib swings and the hook goes up and down. Front to +z. */
export function crane(hex = 0xd7b21b): Machine {
  const group = new Group()
  linkOf(group, carrier(hex), 'carrier')
  const upper = linkOf(group, cabin(hex), 'upper')
  upper.position.set(0, 1.3, -0.8)
  const jib = linkOf(upper, jibSolids(hex), 'jib')
  jib.position.set(0, 0.7, -0.6)
  const rope = linkOf(jib, ropeSolids(), 'rope')
  rope.position.set(0, 0, 7.4)
  return {
    group,
    halfWidthM: 1.35,
    halfLengthM: 3.4,
    centreZM: 0,
    pose: ({ timeS, running, liftM }) => {
      const swing = running ? 0.35 * Math.sin(timeS * 0.25) : 0
      const raised = 0.85
      upper.rotation.y = swing
      jib.rotation.x = -raised
      rope.rotation.x = raised
      rope.scale.y = 1 + (running ? 0.25 * Math.sin(timeS * 0.4) : 0) - liftM * 0.15
    },
  }
}

function carrier(hex: number): Solids {
  const s = new Solids()
  s.rounded('paint', hex, [2.4, 0.5, 6.6], { at: [0, 1.0, 0] }, 0.08)
  s.rounded('paint', hex, [1.3, 1.1, 1.5], { at: [-0.5, 1.55, 2.7] }, 0.12)
  s.rounded('glass', 0x24303a, [1.24, 0.55, 1.44], { at: [-0.5, 1.75, 2.76] }, 0.06)
  s.box('paint', 0x1d1e20, [2.42, 0.18, 0.1], { at: [0, 0.75, 3.3] })
  for (const z of [2.2, 0.9, -1.2, -2.5])
    for (const x of [-1.0, 1.0]) {
      s.cylinder('rubber', 0x19191a, 0.52, 0.42, { at: [x, 0.52, z], turnDeg: [0, 0, 90] }, 0.52, 22)
      s.cylinder('metal', 0xa9abad, 0.26, 0.44, { at: [x, 0.52, z], turnDeg: [0, 0, 90] }, 0.26, 12)
    }
  for (const z of [-3.0, 1.6])
    for (const x of [-2.0, 2.0]) {
      s.box('metal', 0x8c8f92, [2.0, 0.16, 0.2], { at: [x * 0.6, 0.85, z] })
      s.cylinder('metal', 0xb9bcc0, 0.07, 0.8, { at: [x, 0.45, z] })
      s.box('metal', 0x3a3b3d, [0.5, 0.06, 0.5], { at: [x, 0.04, z] })
    }
  return s
}

function cabin(hex: number): Solids {
  const s = new Solids()
  s.rounded('paint', hex, [2.2, 0.8, 2.4], { at: [0, 0.4, -0.6] }, 0.1)
  s.rounded('paint', 0x2a2c2e, [2.2, 0.9, 0.7], { at: [0, 0.5, -1.9] }, 0.12)
  s.rounded('paint', hex, [0.85, 1.2, 1.3], { at: [-0.85, 0.75, 0.6] }, 0.08)
  s.rounded('glass', 0x24303a, [0.8, 0.7, 1.36], { at: [-0.85, 0.95, 0.62] }, 0.06)
  return s
}

function jibSolids(hex: number): Solids {
  const s = new Solids()
  s.box('paint', hex, [0.62, 0.66, 4.4], { at: [0, 0, 1.9] })
  s.box('paint', 0xe8e4d4, [0.5, 0.54, 2.4], { at: [0, 0, 4.9] })
  s.box('paint', hex, [0.38, 0.42, 2.0], { at: [0, 0, 6.6] })
  s.box('metal', 0x36383b, [0.34, 0.5, 0.4], { at: [0, -0.1, 7.5] })
  s.bar('metal', 0xb9bcc0, [0, -0.9, 1.4], [0, -0.2, 2.8], 0.12)
  return s
}

function ropeSolids(): Solids {
  const s = new Solids()
  for (const x of [-0.08, 0.08]) s.bar('metal', 0x2c2d2f, [x, 0, 0], [x, -3.0, 0], 0.018)
  s.rounded('paint', 0xd42a1e, [0.36, 0.42, 0.26], { at: [0, -3.15, 0] }, 0.06)
  s.bar('metal', 0x6c6f72, [0, -3.3, 0], [0, -3.6, 0], 0.04)
  s.bar('metal', 0x6c6f72, [0, -3.6, 0], [0.14, -3.55, 0], 0.04)
  return s
}
