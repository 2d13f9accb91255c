import { Solids } from '../geometry/solid.js'
import { Random } from '../world/random.js'
import { barrier, bollard, cone, fence, floorLine, lampPost } from './props.js'
import { type Site } from './site.js'

const roadM = [
  [-1.6, -14],
  [2.4, -14],
  [2.4, 12],
  [-1.6, 12],
] as [number, number][]

/** A works gate: the road with its barrier arm and booth, a walkway with a turnstile, fence, hedge, the works behind. */
export function gate(): Site {
  const s = new Solids()
  const random = new Random('gate')
  s.box('grass', 0x6f8050, [120, 0.2, 120], { at: [0, -0.14, -10] })
  s.box('asphalt', 0x67686b, [4.6, 0.1, 70], { at: [0.4, -0.05, -10] })
  s.box('concrete', 0xaaa79f, [3.6, 0.14, 40], { at: [-3.75, -0.03, -6] })
  s.box('concrete', 0xa5a29a, [3.2, 0.14, 40], { at: [4.4, -0.03, -6] })
  for (let z = -30; z < 14; z += 2.4) floorLine(s, [0.4, z], [0.4, z + 1.2], 0.1, 0xdedcd4)
  for (let x = -1.7; x < 2.6; x += 0.6) floorLine(s, [x, 2.4], [x, 4.4], 0.32, 0xdedcd4)
  floorLine(s, [-1.8, 0.4], [2.6, 0.4], 0.3, 0xdedcd4)
  booth(s)
  arm(s)
  fence(s, [-24, -2.0], [-5.6, -2.0], 2.2, 0x3f6a4c)
  fence(s, [6.2, -2.0], [26, -2.0], 2.2, 0x3f6a4c)
  for (const x of [-5.55, -2.05, 2.75, 6.1]) s.box('brick', 0x94604a, [0.4, 2.4, 0.4], { at: [x, 1.2, -2.0] })
  turnstile(s)
  for (let x = -23; x < 26; x += 1.3)
    if (x < -6.5 || x > 7)
      s.ball('grass', random.pick([0x3f5a31, 0x48663a, 0x39522d]), random.between(0.65, 1.0), {
        at: [x, 0.55, -3.2],
      })
  works(s)
  for (const z of [-0.6, 1.2, 5.2]) bollard(s, -2.05, z)
  for (const [x, z] of [
    [2.85, 1.6],
    [2.85, 4.8],
  ] as const)
    cone(s, x, z)
  barrier(s, 6.6, 2.4, 3, 90)
  lampPost(s, -6.4, 0.5, 1)
  lampPost(s, 7.0, -0.6, 1)
  return {
    name: 'gate',
    indoor: false,
    meshes: s.meshes(),
    camera: { positionM: [-4.9, 3.9, 10.2], lookAtM: [-0.1, 0.9, 0.6], fovDeg: 38 },
    zones: [
      { id: 'road', polygonM: roadM },
      {
        id: 'walkway',
        polygonM: [
          [-5.5, -8],
          [-2.0, -8],
          [-2.0, 8],
          [-5.5, 8],
        ],
      },
    ],
    lamps: [
      { at: [-6.4, 6.4, 1.8], hex: 0xffdca8, strength: 80 },
      { at: [7, 6.4, 0.7], hex: 0xffdca8, strength: 80 },
      { at: [3.9, 2.6, 1.4], hex: 0xfff2dc, strength: 8 },
    ],
    sunFrom: [-7, 7, 6],
    groundM: { fromM: [-5.2, -1.4], toM: [4.6, 5.6] },
  }
}

function booth(s: Solids): void {
  s.rounded('paint', 0xdcd8cc, [1.9, 1.05, 2.0], { at: [4.35, 0.56, -0.2] }, 0.03)
  s.rounded('glass', 0x2f3e48, [1.84, 1.15, 1.94], { at: [4.35, 1.62, -0.2] }, 0.02)
  for (const [dx, dz] of [
    [-0.93, -0.98],
    [0.93, -0.98],
    [-0.93, 0.98],
    [0.93, 0.98],
    [0, 0.98],
    [-0.93, 0],
  ] as const)
    s.box('paint', 0xdcd8cc, [0.08, 1.2, 0.08], { at: [4.35 + dx, 1.62, -0.2 + dz] })
  s.rounded('paint', 0x9c2f25, [2.5, 0.22, 2.6], { at: [4.35, 2.3, -0.2] }, 0.04)
  s.box('paint', 0xf2f0ea, [1.2, 0.3, 0.04], { at: [4.35, 2.3, 1.12] })
}

function arm(s: Solids): void {
  s.rounded('paint', 0xd8ae1b, [0.36, 1.05, 0.36], { at: [2.95, 0.55, 1.0] }, 0.04)
  const turn = (at: number): [number, number, number] => [2.9 - at * 0.27, 1.1 + at * 0.96, 1.0]
  for (let i = 0; i < 9; i++)
    s.bar('paint', i % 2 === 0 ? 0xd8382a : 0xf2f0ea, turn(i * 0.46), turn((i + 1) * 0.46), 0.045)
}

function turnstile(s: Solids): void {
  for (const x of [-4.6, -3.0]) s.rounded('metal', 0x8b9094, [0.26, 1.0, 1.3], { at: [x, 0.52, -2.0] }, 0.05)
  s.box('metal', 0x6e7478, [3.4, 0.14, 0.5], { at: [-3.8, 2.46, -2.0] })
  s.box('paint', 0x1e62b4, [1.6, 0.4, 0.05], { at: [-3.8, 2.7, -1.8] })
  s.cylinder('paint', 0xf2f0ea, 0.13, 0.06, { at: [-4.35, 2.7, -1.78], turnDeg: [90, 0, 0] })
}

function works(s: Solids): void {
  s.box('corrugated', 0x8f9ba2, [34, 9, 16], { at: [-14, 4.5, -34] })
  s.box('corrugated', 0xb8b4a8, [22, 6.5, 14], { at: [17, 3.2, -29] })
  s.box('paint', 0x2b4f7c, [34.2, 1.0, 16.2], { at: [-14, 8.6, -34] })
  for (let x = -27; x < 0; x += 4) s.box('glass', 0x33424c, [2.6, 1.4, 0.2], { at: [x, 5.2, -25.95] })
  for (const x of [10, 17, 24]) s.box('paint', 0x5c6770, [4, 4.2, 0.2], { at: [x, 2.1, -21.95] })
  for (const x of [6.5, 9.2]) s.cylinder('concrete', 0xa49f95, 1.0, 15, { at: [x, 7.5, -42] }, 0.7)
}
