import { Vector3 } from 'three'
import { smoothstep } from '../world/easing.js'
import { type Measures, type Skeleton } from './skeleton.js'
import { type Ring } from './tube.js'

/** `t` runs from the pelvis (0) to the base of the neck (1); half axes in metres for a 1.75 m person. */
interface TorsoRing {
  readonly t: number
  readonly halfLeft: number
  readonly halfForward: number
  readonly forward: number
  readonly v: number
}

const ring = (t: number, halfLeft: number, halfForward: number, forward: number, v: number): TorsoRing => ({
  t,
  halfLeft,
  halfForward,
  forward,
  v,
})

export const torsoShape = {
  hips: [
    ring(-0.2, 0.05, 0.05, 0, 0),
    ring(-0.17, 0.12, 0.095, -0.005, 0.1),
    ring(-0.06, 0.163, 0.118, -0.01, 0.3),
    ring(0.06, 0.166, 0.118, -0.006, 0.5),
    ring(0.2, 0.158, 0.112, 0, 0.8),
    ring(0.3, 0.1, 0.08, 0, 1),
  ],
  upper: [
    ring(0.0, 0.12, 0.09, 0, 0),
    ring(0.01, 0.171, 0.122, -0.004, 0.01),
    ring(0.12, 0.166, 0.12, 0, 0.12),
    ring(0.3, 0.158, 0.114, 0.004, 0.3),
    ring(0.45, 0.163, 0.118, 0.006, 0.45),
    ring(0.6, 0.173, 0.124, 0.008, 0.6),
    ring(0.75, 0.183, 0.126, 0.006, 0.75),
    ring(0.86, 0.188, 0.116, -0.002, 0.86),
    ring(0.93, 0.176, 0.1, -0.008, 0.93),
    ring(0.98, 0.142, 0.084, -0.01, 0.97),
    ring(1.02, 0.1, 0.072, -0.01, 0.99),
    ring(1.05, 0.068, 0.064, -0.008, 1),
    ring(1.07, 0.02, 0.02, -0.008, 1),
  ],
} as const

/** Cross-sections of the trunk: the lower 40 % follow the pelvis, the rest the chest, blended in between. */
export function torsoRings(
  rings: readonly TorsoRing[],
  s: Skeleton,
  m: Measures,
  girth: number,
  puff: number,
): Ring[] {
  return rings.map(({ t, halfLeft, halfForward, forward }) => {
    const share = smoothstep(0.1, 0.7, t)
    const frame = s.pelvisQ.clone().slerp(s.chestQ, share)
    const fromPelvis = new Vector3(0, t * m.torso, forward).applyQuaternion(s.pelvisQ).add(s.pelvis)
    const fromChest = new Vector3(0, (t - 1) * m.torso, forward).applyQuaternion(s.chestQ).add(s.chest)
    return {
      centre: fromPelvis.lerp(fromChest, share),
      frame,
      halfLeft: halfLeft * girth * puff,
      halfForward: halfForward * girth * puff,
    }
  })
}
