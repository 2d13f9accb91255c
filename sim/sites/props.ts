import { type Solids } from '../geometry/solid.js'
import { type Random } from '../world/random.js'

const wood = 0xa9825a

/** A pallet, 1.2 x 0.8 m, its top at 0.144 m over `y`. */
export function pallet(s: Solids, x: number, y: number, z: number, turn = 0): void {
  const [cos, sin] = [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)]
  const board = (dx: number, dy: number, dz: number, size: [number, number, number]): void => {
    s.box('wood', wood, size, {
      at: [x + dx * cos + dz * sin, y + dy, z - dx * sin + dz * cos],
      turnDeg: [0, turn, 0],
    })
  }
  for (const dz of [-0.35, -0.175, 0, 0.175, 0.35]) board(0, 0.133, dz, [1.2, 0.022, 0.13])
  for (const dz of [-0.35, 0, 0.35]) {
    for (const dx of [-0.53, 0, 0.53]) board(dx, 0.07, dz, [0.145, 0.1, 0.1])
    board(0, 0.011, dz, [1.2, 0.022, 0.1])
  }
}

/** Pallets one on the other. */
export function palletStack(s: Solids, random: Random, x: number, z: number, count: number, turn = 0): void {
  for (let i = 0; i < count; i++)
    pallet(
      s,
      x + random.between(-0.03, 0.03),
      i * 0.145,
      z + random.between(-0.03, 0.03),
      turn + random.between(-3, 3),
    )
}

/** A loaded pallet: cartons in layers, sometimes wrapped. */
export function loadedPallet(s: Solids, random: Random, x: number, z: number, turn = 0, y = 0): void {
  pallet(s, x, y, z, turn)
  const wrapped = random.chance(0.35)
  const layers = 2 + random.int(3)
  const height = 0.26 + random.next() * 0.12
  const hex = random.pick([0xb08a5c, 0xa67c4e, 0xbd9a70, 0x9d9b94, 0x7d8fa3])
  for (let layer = 0; layer < layers; layer++) {
    for (const [dx, dz] of [
      [-0.3, -0.2],
      [0.3, -0.2],
      [-0.3, 0.2],
      [0.3, 0.2],
    ] as const) {
      if (layer === layers - 1 && random.chance(0.25)) continue
      const angle = (turn * Math.PI) / 180
      s.box('cloth', hex, [0.57, height - 0.01, 0.38], {
        at: [
          x + dx * Math.cos(angle) + dz * Math.sin(angle),
          y + 0.15 + height * (layer + 0.5),
          z - dx * Math.sin(angle) + dz * Math.cos(angle),
        ],
        turnDeg: [0, turn + random.between(-1.5, 1.5), 0],
      })
    }
  }
  if (wrapped)
    s.box('paint', 0xcfd6da, [1.19, height * layers * 0.6, 0.79], {
      at: [x, y + 0.15 + height * layers * 0.32, z],
      turnDeg: [0, turn, 0],
    })
}

export function drum(s: Solids, x: number, z: number, hex: number, y = 0): void {
  s.cylinder('paint', hex, 0.29, 0.88, { at: [x, y + 0.44, z] }, 0.29, 20)
  for (const height of [0.02, 0.3, 0.58, 0.87])
    s.cylinder('metal', hex, 0.302, 0.03, { at: [x, y + height, z] }, 0.302, 20)
}

export function cone(s: Solids, x: number, z: number): void {
  s.box('rubber', 0x2a2a2a, [0.36, 0.03, 0.36], { at: [x, 0.015, z] })
  s.cylinder('paint', 0xe4571d, 0.14, 0.25, { at: [x, 0.155, z] }, 0.095, 16)
  s.cylinder('paint', 0xeceae4, 0.095, 0.14, { at: [x, 0.35, z] }, 0.068, 16)
  s.cylinder('paint', 0xe4571d, 0.068, 0.26, { at: [x, 0.55, z] }, 0.026, 16)
}

export function bollard(s: Solids, x: number, z: number): void {
  s.cylinder('paint', 0xd8ae1b, 0.09, 1.0, { at: [x, 0.5, z] })
  for (const y of [0.35, 0.75]) s.cylinder('paint', 0x1e1e1e, 0.092, 0.14, { at: [x, y, z] })
  s.ball('paint', 0xd8ae1b, 0.09, { at: [x, 1.0, z] })
}

/** A jersey barrier of `length` metres along x, or turned. */
export function barrier(s: Solids, x: number, z: number, length: number, turn = 0, hex = 0xb7b4ac): void {
  const outline = [
    [-0.3, 0],
    [0.3, 0],
    [0.28, 0.1],
    [0.12, 0.32],
    [0.09, 0.8],
    [-0.09, 0.8],
    [-0.12, 0.32],
    [-0.28, 0.1],
  ] as const
  s.plate('concrete', hex, outline, length, { at: [x, 0, z], turnDeg: [0, turn + 90, 0] })
}

/** Mesh fence panels between posts, along x or turned about its first post. */
export function fence(
  s: Solids,
  from: readonly [number, number],
  to: readonly [number, number],
  height: number,
  hex = 0x7c8288,
): void {
  const length = Math.hypot(to[0] - from[0], to[1] - from[1])
  const steps = Math.max(1, Math.round(length / 2.5))
  const at = (i: number): [number, number] => [
    from[0] + ((to[0] - from[0]) * i) / steps,
    from[1] + ((to[1] - from[1]) * i) / steps,
  ]
  const turn = (-Math.atan2(to[1] - from[1], to[0] - from[0]) * 180) / Math.PI
  for (let i = 0; i <= steps; i++)
    s.cylinder('metal', hex, 0.03, height, { at: [at(i)[0], height / 2, at(i)[1]] }, 0.03, 8)
  for (let i = 0; i < steps; i++) {
    const [ax, az] = at(i)
    const [bx, bz] = at(i + 1)
    s.box('mesh', hex, [length / steps, height - 0.15, 0.004], {
      at: [(ax + bx) / 2, height / 2 + 0.05, (az + bz) / 2],
      turnDeg: [0, turn, 0],
    })
    for (const y of [0.15, height - 0.04]) s.bar('metal', hex, [ax, y, az], [bx, y, bz], 0.018, 6)
  }
}

export function container(s: Solids, x: number, z: number, hex: number, turn = 0, length = 6.06): void {
  const angle = (turn * Math.PI) / 180
  const at = (dx: number, y: number, dz: number): [number, number, number] => [
    x + dx * Math.cos(angle) + dz * Math.sin(angle),
    y,
    z - dx * Math.sin(angle) + dz * Math.cos(angle),
  ]
  s.box('corrugated', hex, [length - 0.1, 2.4, 2.34], { at: at(0, 1.3, 0), turnDeg: [0, turn, 0] })
  for (const [dz, y] of [
    [-1.19, 0.1],
    [1.19, 0.1],
    [-1.19, 2.53],
    [1.19, 2.53],
  ] as const)
    s.box('paint', hex, [length, 0.14, 0.08], { at: at(0, y, dz), turnDeg: [0, turn, 0] })
  for (const [dx, dz] of [
    [-0.5, -1],
    [0.5, -1],
    [-0.5, 1],
    [0.5, 1],
  ] as const)
    s.box('paint', hex, [0.12, 2.5, 0.12], {
      at: at(dx * (length - 0.1), 1.3, dz * 1.16),
      turnDeg: [0, turn, 0],
    })
  for (const dz of [-0.7, -0.25, 0.25, 0.7])
    s.bar('metal', 0x9a9da0, at(length / 2 + 0.03, 0.2, dz), at(length / 2 + 0.03, 2.45, dz), 0.02, 6)
}

/** Pallet racking along x with three levels of load. */
export function rack(s: Solids, random: Random, x: number, z: number, bays: number): void {
  for (let i = 0; i <= bays; i++)
    for (const dz of [-0.45, 0.45])
      s.box('paint', 0x23508f, [0.1, 3.6, 0.08], { at: [x + i * 2.8, 1.8, z + dz] })
  for (let i = 0; i < bays; i++) {
    for (const y of [1.3, 2.6])
      for (const dz of [-0.45, 0.45])
        s.box('paint', 0xd66a1e, [2.75, 0.12, 0.06], { at: [x + (i + 0.5) * 2.8, y, z + dz] })
    for (const y of [0, 1.36, 2.66])
      for (const dx of [0.75, 2.05])
        if (random.chance(0.8)) loadedPallet(s, random, x + i * 2.8 + dx, z, 0, y)
  }
}

export function lampPost(s: Solids, x: number, z: number, towardsZ: number): void {
  s.cylinder('metal', 0x85898d, 0.08, 6.5, { at: [x, 3.25, z] }, 0.06)
  s.bar('metal', 0x85898d, [x, 6.45, z], [x, 6.6, z + towardsZ * 1.2], 0.04)
  s.rounded('paint', 0x55585c, [0.3, 0.1, 0.6], { at: [x, 6.6, z + towardsZ * 1.3] }, 0.04)
  s.box('glow', 0xfff1d0, [0.24, 0.02, 0.5], { at: [x, 6.545, z + towardsZ * 1.3] })
}

/** A painted line on the floor; 4 mm over it, so that it never flickers. */
export function floorLine(
  s: Solids,
  from: readonly [number, number],
  to: readonly [number, number],
  width: number,
  hex = 0xd6ac1e,
): void {
  const length = Math.hypot(to[0] - from[0], to[1] - from[1])
  const turn = (-Math.atan2(to[1] - from[1], to[0] - from[0]) * 180) / Math.PI
  s.box('paint', hex, [length, 0.008, width], {
    at: [(from[0] + to[0]) / 2, 0.004, (from[1] + to[1]) / 2],
    turnDeg: [0, turn, 0],
  })
}

/** A closed outline of floor lines. */
export function floorOutline(
  s: Solids,
  corners: readonly (readonly [number, number])[],
  width: number,
  hex?: number,
): void {
  corners.forEach((corner, i) =>
    floorLine(s, corner, corners[(i + 1) % corners.length] ?? corner, width, hex),
  )
}
