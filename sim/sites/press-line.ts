import { Solids } from '../geometry/solid.js'
import { Random } from '../world/random.js'
import { drum, fence, floorLine, floorOutline, loadedPallet, palletStack, rack } from './props.js'
import { type Site } from './site.js'

const pressZoneM = [
  [-4.6, -2.2],
  [3.4, -2.2],
  [3.4, 0.2],
  [-4.6, 0.2],
] as [number, number][]

/** A press hall: painted floor, two press bays behind marked zones, conveyor, racks, benches, columns, hall lamps. */
export function pressLine(): Site {
  const s = new Solids()
  const random = new Random('press-line')
  s.box('concrete', 0x8f9690, [40, 0.2, 30], { at: [0, -0.1, 2] })
  s.box('paint', 0x77877c, [40, 0.006, 3.2], { at: [0, 0.001, 3.6] })
  for (const z of [2.0, 5.2]) floorLine(s, [-14, z], [14, z], 0.12)
  floorOutline(s, pressZoneM, 0.12, 0xc2321f)
  for (let x = -4.4; x < 3.3; x += 0.5) floorLine(s, [x, 0.18], [x + 0.25, 0.02], 0.09, 0xd6ac1e)
  hall(s)
  conveyor(s)
  rack(s, random, 5.8, -4.1, 3)
  bench(s, 6.6, -0.4)
  bench(s, -7.4, -0.2)
  fence(s, [-5.4, -4.6], [-5.4, -1.6], 1.9, 0xcaa51c)
  fence(s, [4.2, -4.6], [4.2, -1.6], 1.9, 0xcaa51c)
  loadedPallet(s, random, 6.4, 1.0, 3)
  palletStack(s, random, 7.9, 1.1, 5)
  loadedPallet(s, random, -6.3, 1.1, 90)
  for (const [x, z, hex] of [
    [-8.4, 1.2, 0x2a5d8e],
    [-7.9, 0.7, 0xa83b22],
  ] as const)
    drum(s, x, z, hex)
  s.rounded('metal', 0x80868b, [1.1, 0.75, 0.9], { at: [-1.0, 0.42, 0.9] }, 0.03)
  for (let i = 0; i < 14; i++)
    s.box('metal', 0xaab0b4, [0.3, 0.02, 0.2], {
      at: [-1 + random.between(-0.35, 0.35), 0.8 + i * 0.012, 0.9 + random.between(-0.25, 0.25)],
      turnDeg: [0, random.between(0, 90), 8],
    })
  const lamps = [
    [-6, 1.5],
    [0, 1.5],
    [6, 1.5],
    [-3, -2.5],
    [3, -2.5],
  ] as const
  return {
    name: 'press-line',
    indoor: true,
    meshes: s.meshes(),
    camera: { positionM: [-3.4, 3.9, 8.3], lookAtM: [0.2, 0.85, -0.6], fovDeg: 42 },
    zones: [
      { id: 'press-zone', polygonM: pressZoneM },
      {
        id: 'walkway',
        polygonM: [
          [-10, 2],
          [10, 2],
          [10, 5.2],
          [-10, 5.2],
        ],
      },
    ],
    lamps: lamps.map(([x, z]) => ({ at: [x, 5.4, z] as const, hex: 0xf2f6ff, strength: 42 })),
    sunFrom: [2.5, 9, 4],
    groundM: { fromM: [-5, 0.4], toM: [5.4, 5.0] },
  }
}

function hall(s: Solids): void {
  s.box('corrugated', 0xb3b8b4, [40, 8, 0.3], { at: [0, 4, -5.6] })
  s.box('paint', 0x4f6d80, [40, 1.4, 0.32], { at: [0, 0.7, -5.58] })
  s.box('corrugated', 0xa9aeaa, [0.3, 8, 30], { at: [-14, 4, 4] })
  s.box('corrugated', 0xa9aeaa, [0.3, 8, 30], { at: [16, 4, 4] })
  for (const x of [-9.4, -2.4, 4.7, 11.5]) {
    s.box('paint', 0x767d82, [0.32, 8, 0.14], { at: [x, 4, -5.2] })
    for (const dz of [-0.1, 0.1]) s.box('paint', 0x767d82, [0.14, 8, 0.05], { at: [x, 4, -5.2 + dz] })
    s.box('paint', 0xd6ac1e, [0.36, 1.2, 0.3], { at: [x, 0.6, -5.2] })
  }
  for (let x = -12; x <= 14; x += 4.3) {
    s.box('glow', 0xc9dbe6, [2.6, 1.1, 0.05], { at: [x, 5.6, -5.42] })
    for (const dx of [-0.65, 0, 0.65])
      s.box('paint', 0x5d6469, [0.05, 1.1, 0.08], { at: [x + dx, 5.6, -5.4] })
  }
  s.rounded('paint', 0xa8b0b4, [1.2, 2.1, 0.5], { at: [-8.4, 1.05, -5.1] }, 0.03)
  s.rounded('paint', 0xa8b0b4, [1.2, 2.1, 0.5], { at: [-10.0, 1.05, -5.1] }, 0.03)
  s.box('paint', 0xe8c81b, [0.3, 0.3, 0.02], { at: [-8.4, 1.6, -4.84] })
  s.bar('metal', 0xa33022, [-14, 4.4, -5.3], [16, 4.4, -5.3], 0.07)
  s.bar('metal', 0x2d6aa0, [-14, 4.05, -5.3], [16, 4.05, -5.3], 0.05)
  s.box('paint', 0x1f7a45, [0.9, 0.35, 0.04], { at: [-0.6, 3.3, -5.36] })
  s.box('paint', 0xe6e4dc, [2.4, 1.0, 0.04], { at: [1.6, 2.9, -5.36] })
  s.box('paint', 0xb3261c, [2.4, 0.25, 0.05], { at: [1.6, 3.28, -5.36] })
  s.cylinder('paint', 0xb3261c, 0.09, 0.5, { at: [-2.1, 1.1, -4.95] })
}

function conveyor(s: Solids): void {
  s.box('metal', 0x5b6064, [11, 0.14, 0.75], { at: [-0.6, 0.82, -4.2] })
  s.box('rubber', 0x202224, [11, 0.03, 0.6], { at: [-0.6, 0.91, -4.2] })
  for (let x = -6; x <= 5; x += 1.8)
    for (const dz of [-0.32, 0.32]) s.box('metal', 0x5b6064, [0.08, 0.8, 0.08], { at: [x, 0.4, -4.2 + dz] })
  for (const x of [-4.2, -2.7, -0.6, 1.4, 3.2])
    s.box('metal', 0x9ea4a8, [0.55, 0.12, 0.4], { at: [x, 0.99, -4.2] })
}

function bench(s: Solids, x: number, z: number): void {
  s.box('wood', 0x9a7a52, [1.8, 0.06, 0.75], { at: [x, 0.9, z] })
  for (const [dx, dz] of [
    [-0.8, -0.3],
    [0.8, -0.3],
    [-0.8, 0.3],
    [0.8, 0.3],
  ] as const)
    s.box('metal', 0x3f5468, [0.07, 0.88, 0.07], { at: [x + dx, 0.44, z + dz] })
  s.rounded('paint', 0x2f5d86, [0.5, 0.7, 0.65], { at: [x + 0.5, 0.5, z] }, 0.02)
  s.box('metal', 0x74797d, [0.3, 0.2, 0.2], { at: [x - 0.5, 1.02, z] })
  s.rounded('paint', 0xb33b20, [0.45, 0.22, 0.22], { at: [x + 0.3, 1.04, z - 0.1] }, 0.02)
}
