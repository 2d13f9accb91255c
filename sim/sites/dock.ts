import { Solids } from '../geometry/solid.js'
import { Random } from '../world/random.js'
import { bollard, cone, drum, floorLine, floorOutline, lampPost, loadedPallet, palletStack } from './props.js'
import { type Site } from './site.js'

const laneM = [
  [-5.2, 0.6],
  [5.6, 0.6],
  [5.6, 3.4],
  [-5.2, 3.4],
] as [number, number][]
const doorM = [
  [-4.6, -3.2],
  [-1.4, -3.2],
  [-1.4, -0.6],
  [-4.6, -0.6],
] as [number, number][]

/** A loading dock: the hall's front with two doors and a canopy, the apron with its forklift lane and stacked goods. */
export function dock(): Site {
  const s = new Solids()
  const random = new Random('dock')
  s.box('asphalt', 0x6f7072, [70, 0.2, 60], { at: [0, -0.1, 6] })
  s.box('concrete', 0xa6a49d, [13.5, 0.02, 8.4], { at: [0, -0.005, 1] })
  front(s)
  floorOutline(s, laneM, 0.12)
  for (let x = -4.8; x < 5.4; x += 1.1) floorLine(s, [x, 2.0], [x + 0.5, 2.0], 0.08, 0xe4e2da)
  floorOutline(s, doorM, 0.1, 0xb9281f)
  for (let i = 0; i < 8; i++) floorLine(s, [-4.5 + i * 0.4, -3.1], [-4.2 + i * 0.4, -0.7], 0.06, 0xb9281f)

  loadedPallet(s, random, 1.5, -2.6, 0)
  loadedPallet(s, random, 2.9, -2.7, 4)
  loadedPallet(s, random, 6.6, -2.2, 90)
  palletStack(s, random, 6.5, -0.4, 7, 90)
  palletStack(s, random, 6.7, 1.0, 4, 88)
  loadedPallet(s, random, -6.6, 3.8, 92)
  palletStack(s, random, -6.7, 2.2, 9, 90)
  for (const [x, z, hex] of [
    [-6.5, 0.2, 0x2a5d8e],
    [-6.9, -0.5, 0x2a5d8e],
    [-6.2, -0.6, 0x8c2b22],
  ] as const)
    drum(s, x, z, hex)
  for (const x of [-4.9, -1.1, 0.6, 4.4]) bollard(s, x, -3.35)
  for (const [x, z] of [
    [5.9, 3.7],
    [-5.5, 0.3],
    [5.9, 0.3],
  ] as const)
    cone(s, x, z)
  s.rounded('paint', 0x34573f, [1.8, 1.2, 1.0], { at: [9.4, 0.65, -2.3] }, 0.05)
  s.rounded('paint', 0x34573f, [1.85, 0.08, 1.1], { at: [9.4, 1.3, -2.3], turnDeg: [8, 0, 0] }, 0.03)
  lampPost(s, -9.5, -1.5, 1)
  lampPost(s, 9.8, 0.5, 1)
  for (let x = -30; x <= 30; x += 4) s.box('brick', 0x8f8a80, [3.9, 2.2, 0.2], { at: [x, 1.1, 33] })
  return {
    name: 'dock',
    indoor: false,
    meshes: s.meshes(),
    camera: { positionM: [2.6, 4.1, 9.6], lookAtM: [-0.2, 0.75, 0.4], fovDeg: 40 },
    zones: [
      { id: 'forklift-lane', polygonM: laneM },
      { id: 'door-one', polygonM: doorM },
    ],
    lamps: [
      { at: [-3, 4.0, -2.6], hex: 0xffe2b0, strength: 26 },
      { at: [2.5, 4.0, -2.6], hex: 0xffe2b0, strength: 26 },
      { at: [-9.5, 6.4, -0.2], hex: 0xffd9a0, strength: 60 },
      { at: [9.8, 6.4, 1.8], hex: 0xffd9a0, strength: 60 },
    ],
    sunFrom: [5.5, 8, 6.5],
    groundM: { fromM: [-4.8, -2.4], toM: [5.2, 5.2] },
  }
}

function front(s: Solids): void {
  s.box('corrugated', 0x93a0a8, [30, 6.5, 0.3], { at: [0, 4.0, -3.85] })
  s.box('brick', 0x9c6a52, [30, 1.25, 0.34], { at: [0, 0.62, -3.86] })
  s.box('paint', 0x2d4f78, [30, 0.45, 0.36], { at: [0, 5.6, -3.86] })
  for (const x of [-3, 2.5]) door(s, x, x < 0 ? 0.25 : 0.95)
  s.box('metal', 0x676c70, [15, 0.14, 1.7], { at: [0, 4.35, -3.0] })
  s.box('glow', 0xfff0cc, [0.9, 0.06, 0.2], { at: [-3, 4.25, -2.7] })
  s.box('glow', 0xfff0cc, [0.9, 0.06, 0.2], { at: [2.5, 4.25, -2.7] })
  for (const x of [-7, -0.25, 7]) s.bar('metal', 0x676c70, [x, 5.4, -3.7], [x, 4.4, -2.3], 0.04)
  s.rounded('paint', 0x59636b, [1.0, 2.1, 0.1], { at: [5.7, 1.05, -3.66] }, 0.03)
  s.box('glass', 0x2c3a44, [0.4, 0.5, 0.12], { at: [5.7, 1.6, -3.66] })
  s.box('paint', 0xe8e6df, [0.8, 0.8, 0.04], { at: [-0.25, 2.4, -3.66] })
  s.cylinder('paint', 0x1e62b4, 0.3, 0.05, { at: [-0.25, 2.4, -3.65], turnDeg: [90, 0, 0] })
  for (const x of [-6.2, 5.0, 8.2]) {
    s.box('glass', 0x35434d, [1.5, 0.9, 0.1], { at: [x + 1, 3.1, -3.68] })
    s.box('paint', 0xd5d6d3, [1.6, 0.06, 0.14], { at: [x + 1, 2.62, -3.66] })
  }
  s.bar('metal', 0x6a6f73, [-7.6, 0, -3.6], [-7.6, 7, -3.6], 0.07)
}

/** A roller shutter, open by a share of its height, with bumpers and a number. */
function door(s: Solids, x: number, closed: number): void {
  const height = 3.3
  s.box('paint', 0x1b1d20, [2.9, height, 0.1], { at: [x, height / 2, -3.7] })
  const slats = Math.round((height * closed) / 0.14)
  for (let i = 0; i < slats; i++)
    s.rounded('paint', 0xc9ccce, [2.8, 0.13, 0.06], { at: [x, height - 0.07 - i * 0.14, -3.64] }, 0.02)
  for (const dx of [-1.5, 1.5]) {
    s.box('metal', 0x44484c, [0.14, height, 0.2], { at: [x + dx, height / 2, -3.64] })
    s.rounded('rubber', 0x161616, [0.25, 0.55, 0.2], { at: [x + dx * 0.8, 0.85, -3.6] }, 0.04)
  }
  s.box('metal', 0x44484c, [3.14, 0.28, 0.26], { at: [x, height + 0.14, -3.62] })
  s.box('paint', 0xf0d020, [0.5, 0.5, 0.02], { at: [x + 1.95, 2.6, -3.66] })
}
