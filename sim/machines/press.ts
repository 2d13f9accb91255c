import { Group } from 'three'
import { Solids } from '../geometry/solid.js'
import { type Machine, linkOf } from './machine.js'

const steel = 0x6c7176

/** A straight-side hydraulic press, 2.8 m high, its opening towards +z; while running the slide strokes every 4 s. */
export function press(hex = 0x2c6f5a): Machine {
  const group = new Group()
  linkOf(group, frame(hex), 'frame')
  const slide = linkOf(group, slideSolids(), 'slide')
  return {
    group,
    halfWidthM: 1.15,
    halfLengthM: 0.85,
    centreZM: 0,
    pose: ({ timeS, running }) => {
      const phase = (timeS % 4) / 4
      const down = running ? Math.pow(Math.max(0, Math.sin(phase * 2 * Math.PI)), 0.7) : 0
      slide.position.y = -0.5 * down
    },
  }
}

function frame(hex: number): Solids {
  const s = new Solids()
  for (const x of [-0.9, 0.9]) {
    s.rounded('paint', hex, [0.42, 2.7, 1.3], { at: [x, 1.35, 0] }, 0.05)
    s.box('paint', 0xd9b416, [0.44, 0.14, 0.04], { at: [x, 0.9, 0.65] })
    s.box('paint', 0x19191b, [0.44, 0.06, 0.045], { at: [x, 0.9, 0.65] })
  }
  s.rounded('paint', hex, [2.3, 0.75, 1.4], { at: [0, 2.5, 0] }, 0.06)
  s.rounded('paint', hex, [2.2, 0.7, 1.3], { at: [0, 0.35, 0] }, 0.05)
  s.box('metal', steel, [1.35, 0.12, 1.1], { at: [0, 0.78, 0] })
  s.box('metal', 0x8b8f93, [0.9, 0.16, 0.7], { at: [0, 0.92, 0] })
  s.cylinder('metal', 0x303337, 0.3, 0.6, { at: [-0.35, 3.1, 0] })
  s.rounded('paint', 0x35393d, [0.7, 0.45, 0.7], { at: [0.5, 3.05, 0] }, 0.04)
  s.bar('metal', 0x2a2c2f, [0.5, 3.2, 0], [-0.3, 3.35, 0], 0.04)
  s.rounded('paint', 0xb9bcbd, [0.4, 0.55, 0.22], { at: [1.32, 1.35, 0.5] }, 0.03)
  s.box('glow', 0x4fd0e8, [0.26, 0.18, 0.01], { at: [1.32, 1.48, 0.615] })
  s.cylinder('glow', 0xd02418, 0.04, 0.04, { at: [1.24, 1.22, 0.62], turnDeg: [90, 0, 0] })
  s.cylinder('glow', 0x2fae4e, 0.03, 0.04, { at: [1.38, 1.22, 0.62], turnDeg: [90, 0, 0] })
  for (const [y, color] of [
    [3.34, 0x2fae4e],
    [3.46, 0xe8a317],
    [3.58, 0xc42a1e],
  ] as const)
    s.cylinder('glow', color, 0.06, 0.11, { at: [1.0, y - 0.4, 0.4] })
  s.box('paint', 0xe4c21a, [1.5, 0.22, 0.02], { at: [0, 2.5, 0.71] })
  return s
}

function slideSolids(): Solids {
  const s = new Solids()
  s.rounded('metal', 0x7f858a, [1.34, 0.42, 1.05], { at: [0, 1.92, 0] }, 0.03)
  s.box('metal', 0x9a9fa4, [0.85, 0.2, 0.66], { at: [0, 1.62, 0] })
  for (const x of [-0.4, 0.4]) s.cylinder('metal', 0xc7cace, 0.09, 0.8, { at: [x, 2.4, 0] })
  return s
}
