import { Quaternion, Vector3 } from 'three'
import { type Pose } from '../world/pose.js'

/** Body measures in metres, from stature by the usual proportions. */
export interface Measures {
  readonly heightM: number
  readonly hipHalf: number
  readonly thigh: number
  readonly shin: number
  readonly ankleHeight: number
  readonly torso: number
  readonly shoulderHalf: number
  readonly upperArm: number
  readonly forearm: number
  readonly neck: number
}

export function measuresOf(heightM: number, build: number): Measures {
  return {
    heightM,
    hipHalf: 0.05 * heightM * (0.85 + 0.15 * build),
    thigh: 0.245 * heightM,
    shin: 0.246 * heightM,
    ankleHeight: 0.045 * heightM,
    torso: 0.288 * heightM,
    shoulderHalf: 0.1 * heightM * (0.8 + 0.2 * build),
    upperArm: 0.172 * heightM,
    forearm: 0.155 * heightM,
    neck: 0.036 * heightM,
  }
}

export type Pair<T> = readonly [T, T]

/** Joints and frames in world space; x of every frame is the person's left, y up, z forward. */
export interface Skeleton {
  readonly pelvis: Vector3
  readonly pelvisQ: Quaternion
  readonly chest: Vector3
  readonly chestQ: Quaternion
  readonly neckTop: Vector3
  readonly headQ: Quaternion
  readonly hips: Pair<Vector3>
  readonly thighQ: Pair<Quaternion>
  readonly knees: Pair<Vector3>
  readonly shinQ: Pair<Quaternion>
  readonly ankles: Pair<Vector3>
  readonly footQ: Pair<Quaternion>
  readonly shoulders: Pair<Vector3>
  readonly upperArmQ: Pair<Quaternion>
  readonly elbows: Pair<Vector3>
  readonly forearmQ: Pair<Quaternion>
  readonly wrists: Pair<Vector3>
}

const axisX = new Vector3(1, 0, 0)
const axisY = new Vector3(0, 1, 0)
const axisZ = new Vector3(0, 0, 1)

const turn = (axis: Vector3, angleRad: number): Quaternion =>
  new Quaternion().setFromAxisAngle(axis, angleRad)
const along = (from: Vector3, q: Quaternion, x: number, y: number, z: number): Vector3 =>
  new Vector3(x, y, z).applyQuaternion(q).add(from)

/**
 * Forward kinematics. The lowest sole rests at `heightM` whatever the pose, and the feet stay round the root, so that
 * a crouch needs no hand-made offsets.
 *
 * @param root - ground point, metres; `heightM` is the support under the feet
 */
export function skeletonOf(
  pose: Pose,
  m: Measures,
  root: { readonly x: number; readonly z: number; readonly heightM: number; readonly headingRad: number },
): Skeleton {
  const facing = turn(axisY, root.headingRad)
  const pelvis = new Vector3(0, 0, 0)
  const pelvisQ = facing.clone().multiply(turn(axisX, pose.spinePitch * 0.3))
  const chestQ = facing.clone().multiply(turn(axisY, pose.spineYaw)).multiply(turn(axisX, pose.spinePitch))
  const legs = ([0, 1] as const).map((side) => leg(pose, m, pelvis, pelvisQ, facing, side))

  const soles = legs.flatMap(({ ankle, footQ }) => [
    along(ankle, footQ, 0, -m.ankleHeight, -0.05),
    along(ankle, footQ, 0, -m.ankleHeight, 0.17),
  ])
  const lowest = Math.min(...soles.map((sole) => sole.y))
  const centre = soles.reduce((sum, sole) => sum.add(sole), new Vector3()).multiplyScalar(1 / soles.length)
  const shift = new Vector3(root.x, root.heightM - lowest, root.z)
  if (pose.hipFlex[0] > 0.8 || pose.hipFlex[1] > 0.8)
    shift.add(new Vector3(-centre.x * 0.6, 0, -centre.z * 0.6))

  const chest = along(pelvis, pelvisQ, 0, m.torso * 0.4, 0)
  chest.copy(along(chest, chestQ, 0, m.torso * 0.6, 0))
  const neckTop = along(chest, chestQ, 0, m.neck, 0.012)
  const headQ = chestQ
    .clone()
    .multiply(turn(axisX, pose.headPitch - pose.spinePitch * 0.7))
    .multiply(turn(axisY, pose.headYaw))
  const arms = ([0, 1] as const).map((side) => arm(pose, m, chest, chestQ, side))

  const pair = <T, U>(list: readonly T[], of: (item: T) => U): Pair<U> => [of(list[0] as T), of(list[1] as T)]
  const moved = (point: Vector3): Vector3 => point.clone().add(shift)
  return {
    pelvis: moved(pelvis),
    pelvisQ,
    chest: moved(chest),
    chestQ,
    neckTop: moved(neckTop),
    headQ,
    hips: pair(legs, (l) => moved(l.hip)),
    thighQ: pair(legs, (l) => l.thighQ),
    knees: pair(legs, (l) => moved(l.knee)),
    shinQ: pair(legs, (l) => l.shinQ),
    ankles: pair(legs, (l) => moved(l.ankle)),
    footQ: pair(legs, (l) => l.footQ),
    shoulders: pair(arms, (a) => moved(a.shoulder)),
    upperArmQ: pair(arms, (a) => a.upperQ),
    elbows: pair(arms, (a) => moved(a.elbow)),
    forearmQ: pair(arms, (a) => a.forearmQ),
    wrists: pair(arms, (a) => moved(a.wrist)),
  }
}

function leg(pose: Pose, m: Measures, pelvis: Vector3, pelvisQ: Quaternion, facing: Quaternion, side: 0 | 1) {
  const sign = side === 0 ? 1 : -1
  const hip = along(pelvis, pelvisQ, sign * m.hipHalf, 0, 0)
  const thighQ = facing
    .clone()
    .multiply(turn(axisZ, sign * pose.hipAbduct[side]))
    .multiply(turn(axisX, -pose.hipFlex[side]))
  const knee = along(hip, thighQ, 0, -m.thigh, 0)
  const shinQ = thighQ
    .clone()
    .multiply(turn(axisX, pose.kneeFlex[side]))
    .multiply(turn(axisZ, -sign * pose.hipAbduct[side] * 0.7))
  const ankle = along(knee, shinQ, 0, -m.shin, 0)
  const footQ = facing
    .clone()
    .multiply(turn(axisY, sign * 0.12))
    .multiply(turn(axisX, pose.footPitch[side]))
  return { hip, thighQ, knee, shinQ, ankle, footQ }
}

function arm(pose: Pose, m: Measures, chest: Vector3, chestQ: Quaternion, side: 0 | 1) {
  const sign = side === 0 ? 1 : -1
  const shoulder = along(chest, chestQ, sign * m.shoulderHalf, -0.05 * (m.heightM / 1.75), -0.005)
  const upperQ = chestQ
    .clone()
    .multiply(turn(axisZ, sign * pose.shoulderAbduct[side]))
    .multiply(turn(axisX, -pose.shoulderFlex[side] - pose.spinePitch * 0.6))
    .multiply(turn(axisY, -sign * pose.shoulderTwist[side]))
  const elbow = along(shoulder, upperQ, 0, -m.upperArm, 0)
  const forearmQ = upperQ.clone().multiply(turn(axisX, -pose.elbowFlex[side]))
  const wrist = along(elbow, forearmQ, 0, -m.forearm, 0)
  return { shoulder, upperQ, elbow, forearmQ, wrist }
}
