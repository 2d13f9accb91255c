import { Color, type Quaternion, Vector3 } from 'three'
import { smoothstep } from '../world/easing.js'
import { type Tile, tileUv } from './template.js'

/** A cross-section: an ellipse round `centre`, in the plane of the frame's x (left) and z (forward). */
export interface Ring {
  readonly centre: Vector3
  readonly frame: Quaternion
  readonly halfLeft: number
  readonly halfForward: number
}

/** How the rings of one tube look; fixed for a person's life. */
export interface RingPaint {
  readonly hex: number
  readonly v: number
}

export interface MeshArrays {
  readonly position: Float32Array
  readonly normal: Float32Array
  readonly color: Float32Array
  readonly uv: Float32Array
}

/** A tube through rings, closed at both ends by the first and last ring, which should be small. */
export class Tube {
  readonly vertexCount: number
  readonly indices: number[] = []

  constructor(
    readonly firstVertex: number,
    readonly paints: readonly RingPaint[],
    readonly tile: Tile,
    readonly around: number,
    /** Rings of a trunk go up, those of a limb down; it decides which side of a triangle is the outside. */
    goesUp: boolean,
  ) {
    const stride = around + 1
    this.vertexCount = paints.length * stride
    for (let ring = 0; ring + 1 < paints.length; ring++) {
      for (let step = 0; step < around; step++) {
        const a = firstVertex + ring * stride + step
        const [b, c] = goesUp ? [a + stride, a + 1] : [a + 1, a + stride]
        this.indices.push(a, b, c, a + stride + 1, c, b)
      }
    }
  }

  writeFixed(arrays: MeshArrays): void {
    let vertex = this.firstVertex
    for (const paint of this.paints) {
      const color = new Color(paint.hex)
      for (let step = 0; step <= this.around; step++, vertex++) {
        color.toArray(arrays.color, vertex * 3)
        arrays.uv.set(tileUv(this.tile, (step / this.around) * 0.999, paint.v), vertex * 2)
      }
    }
  }

  writePose(arrays: MeshArrays, rings: readonly Ring[]): void {
    const left = new Vector3()
    const forward = new Vector3()
    const point = new Vector3()
    let vertex = this.firstVertex
    for (const ring of rings) {
      left.set(1, 0, 0).applyQuaternion(ring.frame)
      forward.set(0, 0, 1).applyQuaternion(ring.frame)
      for (let step = 0; step <= this.around; step++, vertex++) {
        const angle = (step / this.around) * 2 * Math.PI
        const cos = Math.cos(angle)
        const sin = Math.sin(angle)
        point
          .copy(ring.centre)
          .addScaledVector(left, cos * ring.halfLeft)
          .addScaledVector(forward, sin * ring.halfForward)
        point.toArray(arrays.position, vertex * 3)
        point
          .set(0, 0, 0)
          .addScaledVector(left, cos / ring.halfLeft)
          .addScaledVector(forward, sin / ring.halfForward)
        point.normalize().toArray(arrays.normal, vertex * 3)
      }
    }
  }
}

/** A limb of two bones: where along it a ring sits, and how thick it is there. */
export interface LimbRing extends RingPaint {
  /** -1 at the root, 0 at the middle joint, 1 at the end. */
  readonly at: number
  readonly radius: number
}

/** Rings along root -> joint -> end, rounded at the joint so that an elbow is no kink. */
export function limbRings(
  rings: readonly LimbRing[],
  root: Vector3,
  joint: Vector3,
  end: Vector3,
  upper: Quaternion,
  lower: Quaternion,
  girth: number,
): Ring[] {
  const soft = 0.24
  return rings.map(({ at, radius }) => {
    const share = smoothstep(-soft, soft, at)
    const centre = new Vector3()
    if (at <= -soft) centre.lerpVectors(joint, root, -at)
    else if (at >= soft) centre.lerpVectors(joint, end, at)
    else {
      const t = (at + soft) / (2 * soft)
      const before = new Vector3().lerpVectors(joint, root, soft)
      const after = new Vector3().lerpVectors(joint, end, soft)
      centre
        .copy(before)
        .multiplyScalar((1 - t) * (1 - t))
        .addScaledVector(joint, 2 * t * (1 - t))
        .addScaledVector(after, t * t)
    }
    return {
      centre,
      frame: upper.clone().slerp(lower, share),
      halfLeft: radius * girth,
      halfForward: radius * girth,
    }
  })
}
