import { Solids } from '../geometry/solid.js'
import { Random } from '../world/random.js'
import { barrier, cone, container, drum, fence, lampPost, palletStack } from './props.js'
import { type Site } from './site.js'

const digM = [
  [-4.8, -5.6],
  [2.6, -5.6],
  [2.6, -0.6],
  [-4.8, -0.6],
] as [number, number][]

/** A construction yard: dirt, a shell of columns with a scaffold, containers, pipes, spoil heaps, a fence. */
export function yard(): Site {
  const s = new Solids()
  const random = new Random('yard')
  s.box('dirt', 0xa38a6a, [90, 0.2, 80], { at: [0, -0.1, 0] })
  shell(s)
  scaffold(s)
  container(s, -12.5, -7.5, 0x2e5f8c, 12)
  container(s, 12.8, -4.5, 0x9b4a2c, -72)
  fence(s, [-22, -16], [22, -16], 2.0)
  fence(s, [-22, -16], [-22, 12], 2.0)
  for (const [x, z, size] of [
    [-8.6, -9.6, 2.6],
    [-6.3, -10.2, 1.9],
    [11.5, -11, 3.2],
  ] as const)
    heap(s, random, x, z, size)
  for (let row = 0; row < 3; row++)
    for (let i = 0; i < 4 - row; i++) {
      s.cylinder('concrete', 0xaeaaa0, 0.3, 2.6, {
        at: [5.9 + i * 0.62 + row * 0.31, 0.3 + row * 0.53, 1.2],
        turnDeg: [90, 0, 0],
      })
      s.cylinder('rubber', 0x2a2927, 0.2, 2.62, {
        at: [5.9 + i * 0.62 + row * 0.31, 0.3 + row * 0.53, 1.2],
        turnDeg: [90, 0, 0],
      })
    }
  for (let i = 0; i < 7; i++)
    s.box('wood', 0xb08d5f, [3.4, 0.06, 0.24], {
      at: [-6.9, 0.1 + i * 0.065, 1.8 + random.between(-0.05, 0.05)],
      turnDeg: [0, 64 + random.between(-2, 2), 0],
    })
  for (let i = 0; i < 9; i++)
    s.bar('metal', 0x6b4a35, [-7.9 + i * 0.07, 0.06, 4.2], [-5.4 + i * 0.07, 0.06, 5.6], 0.02, 6)
  palletStack(s, random, 6.2, 3.6, 3, 20)
  for (let layer = 0; layer < 4; layer++)
    for (let i = 0; i < 5; i++)
      s.box('brick', 0xb06a4c, [0.22, 0.14, 0.7], {
        at: [5.75 + i * 0.23, 0.52 + layer * 0.145, 3.6],
        turnDeg: [0, 20, 0],
      })
  for (const x of [-5.2, -2.9, -0.6, 1.7]) cone(s, x, -0.4)
  barrier(s, 4.3, -0.5, 2.6, 75)
  for (const [x, z] of [
    [8.6, 0.2],
    [9.2, 0.6],
  ] as const)
    drum(s, x, z, 0x2a5d8e)
  s.rounded('paint', 0xc8741c, [0.9, 0.6, 0.55], { at: [-7.4, 0.4, -1.0] }, 0.05)
  lampPost(s, -10, -3, 1)
  lampPost(s, 10.4, -1, 1)
  return {
    name: 'yard',
    indoor: false,
    meshes: s.meshes(),
    camera: { positionM: [-2.8, 4.2, 10.0], lookAtM: [0.2, 1.0, -0.6], fovDeg: 41 },
    zones: [
      { id: 'dig-zone', polygonM: digM },
      {
        id: 'scaffold-foot',
        polygonM: [
          [4.5, -5.4],
          [9.5, -5.4],
          [9.5, -2.2],
          [4.5, -2.2],
        ],
      },
    ],
    lamps: [
      { at: [-10, 6.4, -1.7], hex: 0xfff0d0, strength: 80 },
      { at: [10.4, 6.4, 0.3], hex: 0xfff0d0, strength: 80 },
      { at: [0, 7, 7], hex: 0xfff0d0, strength: 30 },
    ],
    sunFrom: [-6, 7.5, 5],
    groundM: { fromM: [-4.6, 0.2], toM: [4.8, 5.4] },
  }
}

/** Columns and two slabs of a building that grows. */
function shell(s: Solids): void {
  for (let x = 3; x <= 19; x += 4)
    for (const z of [-14, -10, -6.4]) s.box('concrete', 0xb1ada4, [0.45, 6.6, 0.45], { at: [x, 3.3, z] })
  for (const y of [3.2, 6.6]) s.box('concrete', 0xa9a59c, [17.5, 0.3, 9], { at: [11, y, -10.2] })
  for (let x = 3; x <= 19; x += 1) s.bar('metal', 0x6b4a35, [x, 6.7, -6.4], [x + 0.05, 7.5, -6.4], 0.015, 5)
  s.box('brick', 0xa0634a, [3.5, 2.9, 0.25], { at: [5, 1.5, -10] })
  s.box('brick', 0xa0634a, [3.5, 1.6, 0.25], { at: [13, 0.8, -6.5] })
}

function scaffold(s: Solids): void {
  const [x0, z0] = [4.6, -5.2]
  for (let i = 0; i <= 2; i++)
    for (const dz of [0, 1.1])
      s.bar('metal', 0x8e9398, [x0 + i * 2.2, 0, z0 + dz], [x0 + i * 2.2, 5.2, z0 + dz], 0.03, 8)
  for (const y of [1.9, 3.8]) {
    s.box('wood', 0x8f744f, [4.6, 0.05, 1.1], { at: [x0 + 2.2, y, z0 + 0.55] })
    for (const dz of [0, 1.1])
      for (const rail of [0.5, 1.0])
        s.bar('metal', 0x8e9398, [x0, y + rail, z0 + dz], [x0 + 4.4, y + rail, z0 + dz], 0.022, 6)
  }
  for (let i = 0; i < 2; i++)
    s.bar('metal', 0x8e9398, [x0 + i * 2.2, 0.1, z0 + 1.1], [x0 + (i + 1) * 2.2, 1.9, z0 + 1.1], 0.02, 6)
  for (const dx of [1.5, 1.95])
    s.bar('metal', 0xc9a21b, [x0 + dx, 0, z0 + 1.62], [x0 + dx, 2.9, z0 + 1.24], 0.025, 6)
  for (let y = 0.25; y < 2.8; y += 0.28)
    s.bar(
      'metal',
      0xc9a21b,
      [x0 + 1.5, y, z0 + 1.62 - y * 0.13],
      [x0 + 1.95, y, z0 + 1.62 - y * 0.13],
      0.015,
      6,
    )
}

/** A spoil heap: overlapping flattened lumps. */
function heap(s: Solids, random: Random, x: number, z: number, size: number): void {
  for (let i = 0; i < 7; i++) {
    const radius = size * random.between(0.45, 0.9)
    s.cylinder(
      'dirt',
      random.pick([0x8c7454, 0x957c5c, 0x83694a]),
      radius,
      radius * 0.75,
      {
        at: [x + random.between(-0.5, 0.5) * size, radius * 0.33, z + random.between(-0.4, 0.4) * size],
        turnDeg: [random.between(-7, 7), random.between(0, 90), random.between(-7, 7)],
      },
      radius * 0.16,
      14,
    )
  }
}
