import { BoxGeometry, type BufferGeometry, ConeGeometry } from 'three'
import { smoothstep } from '../world/easing.js'
import { ball, bent, merged, outward, painted, turned } from './template.js'

/**
 * Heads and what is worn on them, in metres round the head's centre: y up, z where the nose points. The skull is
 * 15 cm wide, 23 cm high and 19 cm deep.
 */

/** Height of the chin: where the box of a head or helmet ends. */
export const chinM = -0.116

/** Skull, face, ears and nose; the face is the atlas tile, everything in the skin's colour. */
export function headTemplate(skinHex: number): BufferGeometry {
  const skull = outward(
    bent(ball(0.077, -chinM, 0.097, 20, 16), (p) => {
      const low = smoothstep(0, -0.11, p.y)
      p.x *= 1 - 0.34 * low
      if (p.z < 0) p.z *= 1 - 0.35 * low
      p.z += 0.012 * low
      if (p.z > 0.07) p.z = 0.07 + (p.z - 0.07) * 0.72
    }),
  )
  const nose = new ConeGeometry(0.015, 0.045, 8)
  nose.rotateX(-0.42)
  nose.translate(0, -0.022, 0.094)
  const ears = [-1, 1].map((side) => ball(0.011, 0.031, 0.019, 8, 6).translate(side * 0.078, -0.012, -0.008))
  return merged([painted(skull, skinHex, 'face'), ...[nose, ...ears].map((part) => painted(part, skinHex))])
}

/** The neck, hung from the head but no part of it. */
export function neckTemplate(skinHex: number): BufferGeometry {
  const neck = turned(
    [
      [0, -0.17],
      [0.062, -0.165],
      [0.056, -0.12],
      [0.055, -0.06],
      [0, -0.05],
    ],
    1.05,
    14,
  )
  neck.translate(0, 0, -0.016)
  return painted(outward(neck), skinHex)
}

/** Hair as a shell that dips below the skull where the face is. */
export function hairTemplate(style: 'short' | 'long' | 'bald', hairHex: number): BufferGeometry | undefined {
  if (style === 'bald') return undefined
  const long = style === 'long'
  const shell = bent(ball(0.084, 0.124, 0.105, 20, 16), (p) => {
    const hairline = p.z > 0 ? 0.035 + 0.32 * p.z : long ? -0.2 : -0.055 + 0.25 * (p.z + 0.1)
    if (p.y < hairline) {
      const shrink = long && p.z <= 0.01 ? 0.98 : 0.86
      p.x *= shrink
      p.z *= shrink
    }
    if (long && p.y < -0.02 && p.z < 0.02) {
      p.y -= 0.05
      p.z -= 0.012
      p.x *= 1.06
    }
  })
  return painted(outward(shell), hairHex)
}

/** Hard hats: a shell with a ridge or vents, and a peak or a brim all round. Sits at the brow. */
export function helmetTemplate(shape: 'classic' | 'full-brim' | 'vented', hex: number): BufferGeometry {
  const brim = shape === 'full-brim' ? 0.05 : 0.014
  const shell = turned(
    [
      [0, 0.075],
      [0.094, 0.028],
      [0.098, 0.014],
      [0.1 + brim, 0.008],
      [0.1 + brim, 0.014],
      [0.106, 0.026],
      [0.105, 0.055],
      [0.096, 0.093],
      [0.076, 0.122],
      [0.046, 0.14],
      [0, 0.147],
    ],
    1.17,
    24,
  )
  const peak = shape === 'classic' ? 0.052 : 0.04
  bent(shell, (p) => {
    const front = p.z / Math.max(1e-6, Math.hypot(p.x, p.z))
    if (p.y < 0.016 && Math.hypot(p.x, p.z) > 0.1 && front > 0.35) {
      p.z += peak * smoothstep(0.35, 0.8, front) * (shape === 'full-brim' ? 0.4 : 1)
      p.y -= 0.008 * smoothstep(0.35, 1, front)
    }
  })
  const ridges = (shape === 'vented' ? [-0.035, 0, 0.035] : [0]).map((x) => {
    const ridge = ball(shape === 'vented' ? 0.008 : 0.013, 0.118, 0.124, 8, 14)
    bent(ridge, (p) => p.set(p.x, Math.max(p.y, 0.03), p.z))
    return ridge.translate(x, 0.036 - Math.abs(x) * 0.35, -0.002)
  })
  const trim =
    shape === 'vented'
      ? [painted(outward(ball(0.02, 0.012, 0.006, 8, 6).translate(0, 0.055, 0.126)), 0x333333)]
      : []
  return merged([
    painted(outward(shell), hex),
    ...ridges.map((ridge) => painted(outward(ridge), hex)),
    ...trim,
  ])
}

export function capTemplate(hex: number): BufferGeometry {
  const dome = turned(
    [
      [0, 0.05],
      [0.085, 0.025],
      [0.09, 0.03],
      [0.09, 0.055],
      [0.082, 0.09],
      [0.055, 0.118],
      [0, 0.13],
    ],
    1.17,
  )
  const peak = bent(ball(0.072, 0.007, 0.085, 14, 6), (p) => (p.y -= 0.02 * smoothstep(0, 0.085, p.z)))
  peak.translate(0, 0.036, 0.098)
  return merged([painted(outward(dome), hex), painted(outward(peak), hex)])
}

export function beanieTemplate(hex: number): BufferGeometry {
  const dome = turned(
    [
      [0, 0.03],
      [0.086, 0.012],
      [0.094, 0.016],
      [0.094, 0.05],
      [0.09, 0.09],
      [0.07, 0.128],
      [0.03, 0.15],
      [0, 0.153],
    ],
    1.16,
  )
  return painted(outward(dome), hex)
}

/** A drawn-up hood: covers the skull and the neck, leaves the face free. */
export function hoodTemplate(hex: number): BufferGeometry {
  const shell = bent(ball(0.106, 0.15, 0.128, 20, 16), (p) => {
    const inFace = p.z > 0.045 && p.y < 0.075
    if (inFace) p.set(p.x * 0.66, p.y, 0.03 + (p.z - 0.045) * 0.2)
    if (p.y < -0.06) {
      p.x *= 1 + 1.6 * (-0.06 - p.y)
      p.y -= 0.012
    }
    p.z -= 0.008
  })
  return painted(outward(shell), hex)
}

export function handTemplate(skinHex: number): BufferGeometry {
  const palm = ball(0.022, 0.058, 0.042, 10, 8).translate(0, -0.055, 0)
  const fingers = ball(0.017, 0.045, 0.036, 10, 8).rotateX(-0.35).translate(0, -0.115, 0.016)
  const thumb = ball(0.012, 0.036, 0.013, 8, 6).rotateX(-0.7).translate(0, -0.055, 0.042)
  return merged([palm, fingers, thumb].map((part) => painted(outward(part), skinHex)))
}

export function bootTemplate(hex: number): BufferGeometry {
  const shoe = bent(ball(0.05, 0.06, 0.145, 14, 10), (p) => {
    if (p.y < -0.02) p.y = -0.02 - (p.y + 0.02) * -0.25
    if (p.z > 0.02) p.y *= 1 - 0.42 * smoothstep(0.02, 0.12, p.z)
    p.x *= 1 - 0.15 * smoothstep(0.05, -0.14, p.z)
  })
  shoe.translate(0, -0.047, 0.06)
  const shaft = turned(
    [
      [0, -0.05],
      [0.05, -0.05],
      [0.052, 0.03],
      [0.054, 0.1],
      [0, 0.11],
    ],
    1.1,
    12,
  )
  const sole = new BoxGeometry(0.088, 0.022, 0.25, 1, 1, 2).translate(0, -0.068, 0.055)
  return merged([painted(outward(shoe), hex), painted(outward(shaft), hex), painted(outward(sole), 0x171513)])
}

export function cartonTemplate(): BufferGeometry {
  const tape = new BoxGeometry(0.401, 0.301, 0.05)
  return merged([
    painted(outward(new BoxGeometry(0.4, 0.3, 0.3)), 0xa57c4f),
    painted(outward(tape), 0xc9ab7c),
  ])
}
