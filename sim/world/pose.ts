import { type PersonState } from './motion.js'
import { clamp, lerp, window01 } from './easing.js'

/** Joint angles in radians, 0 = standing straight. Index 0 is the left side, 1 the right. */
export interface Pose {
  spinePitch: number
  spineYaw: number
  headPitch: number
  headYaw: number
  hipFlex: [number, number]
  hipAbduct: [number, number]
  kneeFlex: [number, number]
  /** World pitch of the sole, positive with the toes down. */
  footPitch: [number, number]
  shoulderFlex: [number, number]
  shoulderAbduct: [number, number]
  shoulderTwist: [number, number]
  elbowFlex: [number, number]
}

/** What makes two people stand and walk differently. */
export interface Habit {
  readonly phaseRad: number
  readonly lookAround: number
  readonly swing: number
  readonly stoop: number
}

const strideM = 1.5

/** The pose of a person, a pure function of its state, the time and its habits. */
export function poseOf(state: PersonState, timeS: number, habit: Habit): Pose {
  const pose = gait(state, timeS, habit)
  const gesture = (pose2: Partial<Pose>, weight: number): void => mix(pose, pose2, weight)
  const { actFromS, actToS } = state

  if (state.carries) gesture(carrying, 1)
  switch (state.act) {
    case 'work':
      gesture(working(timeS, habit), window01(actFromS, actToS, 0.5, timeS))
      break
    case 'crouch':
      gesture(crouching(timeS, habit), window01(actFromS, actToS, 0.7, timeS))
      break
    case 'climb':
      gesture(climbing(state, timeS), window01(actFromS, actToS, 0.35, timeS))
      break
    case 'take_off_helmet':
    case 'put_on_helmet':
      gesture(handToHead, window01(actFromS, actToS, 0.75, timeS))
      break
    case 'ride':
      gesture(driving(timeS, habit), 1)
      break
    case 'pick_up':
    case 'put_down':
      gesture(bending, window01(actFromS, actToS, 0.85, timeS))
      break
    case 'stand':
    case 'stand_until':
    case 'walk':
      break
    default:
      state.act satisfies never
  }
  if (state.helmet === 'in_hand') mix(pose, { shoulderAbduct: [pose.shoulderAbduct[0], 0.16] }, 0.8)
  return pose
}

function gait(state: PersonState, timeS: number, habit: Habit): Pose {
  const amount = clamp(state.speedMps / 1.25, 0, 1.25)
  const phase = (state.walkedM / strideM) * 2 * Math.PI + habit.phaseRad
  const both = (of: (phase: number) => number): [number, number] => [of(phase), of(phase + Math.PI)]
  const knee = (p: number): number =>
    0.06 + amount * (0.1 + 0.66 * Math.pow(Math.max(0, Math.cos(p + 0.9)), 1.6))
  const sway = Math.sin(timeS * 0.9 + habit.phaseRad)
  return {
    spinePitch: 0.05 + habit.stoop + amount * 0.05 + 0.015 * sway,
    spineYaw: amount * 0.12 * Math.sin(phase) + (1 - amount) * 0.05 * sway,
    headPitch: 0.08 + 0.05 * Math.sin(timeS * 0.53 + habit.phaseRad * 2),
    headYaw: habit.lookAround * Math.sin(timeS * 0.61 + habit.phaseRad * 3),
    hipFlex: both((p) => 0.03 + amount * (0.06 + 0.42 * Math.sin(p))),
    hipAbduct: [0.06, 0.06],
    kneeFlex: both(knee),
    footPitch: both(
      (p) =>
        amount *
        (0.55 * Math.pow(Math.max(0, Math.cos(p + 1.9)), 2) -
          0.25 * Math.pow(Math.max(0, Math.cos(p - 1.3)), 3)),
    ),
    shoulderFlex: both((p) => 0.04 - amount * habit.swing * Math.sin(p)),
    shoulderAbduct: [0.13 + 0.02 * sway, 0.13 - 0.02 * sway],
    shoulderTwist: [0.15, 0.15],
    elbowFlex: both((p) => 0.22 + amount * (0.18 + 0.12 * Math.sin(p + Math.PI))),
  }
}

const carrying: Partial<Pose> = {
  spinePitch: 0.02,
  spineYaw: 0,
  shoulderFlex: [0.5, 0.5],
  shoulderAbduct: [0.12, 0.12],
  shoulderTwist: [-0.1, -0.1],
  elbowFlex: [1.15, 1.15],
}

const handToHead: Partial<Pose> = {
  shoulderFlex: [0.08, 2.35],
  shoulderAbduct: [0.13, 0.25],
  shoulderTwist: [0.15, 0.5],
  elbowFlex: [0.25, 1.75],
  headPitch: 0.2,
  headYaw: 0,
}

const bending: Partial<Pose> = {
  spinePitch: 0.75,
  spineYaw: 0,
  headPitch: 0.1,
  headYaw: 0,
  hipFlex: [1.25, 1.15],
  kneeFlex: [1.35, 1.3],
  footPitch: [0, 0.15],
  shoulderFlex: [0.9, 0.9],
  shoulderAbduct: [0.12, 0.12],
  shoulderTwist: [-0.1, -0.1],
  elbowFlex: [0.3, 0.3],
}

function working(timeS: number, habit: Habit): Partial<Pose> {
  const beat = Math.sin(timeS * 3.1 + habit.phaseRad)
  const slow = Math.sin(timeS * 1.3 + habit.phaseRad)
  return {
    spinePitch: 0.28 + 0.04 * slow,
    spineYaw: 0.12 * slow,
    headPitch: 0.35,
    headYaw: 0.15 * slow,
    shoulderFlex: [0.75 + 0.12 * beat, 0.85 - 0.15 * beat],
    shoulderAbduct: [0.2, 0.2],
    shoulderTwist: [0.1, 0.1],
    elbowFlex: [1.05 - 0.2 * beat, 0.95 + 0.25 * beat],
  }
}

function driving(timeS: number, habit: Habit): Partial<Pose> {
  const steer = 0.12 * Math.sin(timeS * 0.8 + habit.phaseRad)
  return {
    spinePitch: -0.08,
    spineYaw: 0,
    headPitch: 0.1,
    headYaw: 0.5 * Math.sin(timeS * 0.7 + habit.phaseRad),
    hipFlex: [1.4, 1.4],
    hipAbduct: [0.16, 0.16],
    kneeFlex: [1.25, 1.25],
    footPitch: [-0.15, -0.15],
    shoulderFlex: [0.75 + steer, 0.75 - steer],
    shoulderAbduct: [0.12, 0.12],
    shoulderTwist: [0.1, 0.1],
    elbowFlex: [0.85, 0.85],
  }
}

function crouching(timeS: number, habit: Habit): Partial<Pose> {
  const beat = Math.sin(timeS * 2.4 + habit.phaseRad)
  return {
    spinePitch: 0.55,
    spineYaw: 0.06 * beat,
    headPitch: 0.15,
    hipFlex: [1.95, 1.55],
    hipAbduct: [0.22, 0.16],
    kneeFlex: [2.15, 2.2],
    footPitch: [0.05, 0.55],
    shoulderFlex: [0.95, 1.0 + 0.12 * beat],
    shoulderAbduct: [0.15, 0.15],
    shoulderTwist: [0, 0],
    elbowFlex: [0.6, 0.7 + 0.2 * beat],
  }
}

function climbing(state: PersonState, timeS: number): Partial<Pose> {
  const phase = (state.heightM * 2 + (timeS - state.actFromS) * 0.2) * Math.PI
  const left = Math.sin(phase)
  return {
    spinePitch: 0.12,
    spineYaw: 0.05 * left,
    headPitch: -0.35,
    headYaw: 0,
    hipFlex: [0.75 + 0.55 * left, 0.75 - 0.55 * left],
    hipAbduct: [0.12, 0.12],
    kneeFlex: [1.0 + 0.6 * left, 1.0 - 0.6 * left],
    footPitch: [0, 0],
    shoulderFlex: [2.3 - 0.4 * left, 2.3 + 0.4 * left],
    shoulderAbduct: [0.15, 0.15],
    shoulderTwist: [0.2, 0.2],
    elbowFlex: [0.7 + 0.35 * left, 0.7 - 0.35 * left],
  }
}

function mix(into: Pose, other: Partial<Pose>, weight: number): void {
  const single = ['spinePitch', 'spineYaw', 'headPitch', 'headYaw'] as const
  const paired = [
    'hipFlex',
    'hipAbduct',
    'kneeFlex',
    'footPitch',
    'shoulderFlex',
    'shoulderAbduct',
    'shoulderTwist',
    'elbowFlex',
  ] as const
  for (const key of single) {
    const target = other[key]
    if (target !== undefined) into[key] = lerp(into[key], target, weight)
  }
  for (const key of paired) {
    const target = other[key]
    if (target !== undefined)
      into[key] = [lerp(into[key][0], target[0], weight), lerp(into[key][1], target[1], weight)]
  }
}
