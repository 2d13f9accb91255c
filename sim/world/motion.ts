import { type PersonAct, type PersonSpec } from '../scenario/schema.js'
import { clamp, lerp, smoothstep } from './easing.js'

export type HelmetState = 'worn' | 'in_hand' | 'none'

/** One act, with its place in time and on the ground. */
interface Segment {
  readonly do: PersonAct['do']
  readonly fromS: number
  readonly toS: number
  readonly from: readonly [number, number]
  readonly to: readonly [number, number]
  readonly headingRad: number
  readonly fromHeightM: number
  readonly toHeightM: number
  readonly walkedBeforeM: number
  readonly speedMps: number
  readonly easeIn: boolean
  readonly easeOut: boolean
}

/** What a person does at one instant; everything a pose is made of. */
export interface PersonState {
  readonly x: number
  readonly z: number
  /** Height of the feet's support over the ground. */
  readonly heightM: number
  readonly headingRad: number
  readonly act: PersonAct['do'] | 'ride'
  readonly actFromS: number
  readonly actToS: number
  readonly walkedM: number
  readonly speedMps: number
  readonly helmet: HelmetState
  readonly carries: boolean
}

export interface Motion {
  readonly endS: number
  at(timeS: number): PersonState
  /** Times at which the helmet goes on or off. */
  readonly helmetChanges: readonly { readonly atS: number; readonly state: HelmetState }[]
}

const rampS = 0.5
const gestureS = 1.6
const liftS = 1.8
const radians = Math.PI / 180

/**
 * Lays a person's acts end to end. Positions are closed formulas of time: no state is stepped, so any frame can be
 * asked for alone.
 */
export function compileMotion(person: PersonSpec): Motion {
  const { segments, helmetChanges, carryChanges } = layOut(person)
  const first = helmetChanges[0]?.state ?? 'none'

  const at = (timeS: number): PersonState => {
    const segment = segmentAt(segments, timeS)
    const { doneM, speedMps } = progress(segment, timeS)
    const lengthM = Math.hypot(segment.to[0] - segment.from[0], segment.to[1] - segment.from[1])
    const share = lengthM > 0 ? clamp(doneM / lengthM, 0, 1) : 0
    const climbShare = segment.do === 'climb' ? smoothstep(segment.fromS, segment.toS, timeS) : 0
    return {
      x: lerp(segment.from[0], segment.to[0], share),
      z: lerp(segment.from[1], segment.to[1], share),
      heightM:
        segment.do === 'climb' ? lerp(segment.fromHeightM, segment.toHeightM, climbShare) : segment.toHeightM,
      headingRad: smoothHeading(segments, timeS),
      act: segment.do,
      actFromS: segment.fromS,
      actToS: segment.toS,
      walkedM: segment.walkedBeforeM + doneM,
      speedMps,
      helmet: lastBefore(helmetChanges, timeS)?.state ?? first,
      carries: lastBefore(carryChanges, timeS)?.carries ?? false,
    }
  }
  return { endS: segments.at(-1)?.toS ?? 0, at, helmetChanges }
}

function layOut(person: PersonSpec): {
  segments: Segment[]
  helmetChanges: { atS: number; state: HelmetState }[]
  carryChanges: { atS: number; carries: boolean }[]
} {
  const segments: Segment[] = []
  const startState: HelmetState =
    person.headgear.kind !== 'helmet' ? 'none' : person.headgear.inHand ? 'in_hand' : 'worn'
  const helmetChanges = [{ atS: -1e9, state: startState }]
  const carryChanges: { atS: number; carries: boolean }[] = []
  let timeS = 0
  let place: readonly [number, number] = person.start
  let headingRad = person.faceDeg * radians
  let heightM = 0
  let walkedM = 0

  person.acts.forEach((act, index) => {
    const fromS = timeS
    const from = place
    const walkedBeforeM = walkedM
    const fromHeightM = heightM
    let easeIn = true
    let easeOut = true
    let speedMps = 0
    switch (act.do) {
      case 'walk': {
        const lengthM = Math.hypot(act.to[0] - place[0], act.to[1] - place[1])
        easeIn = person.acts[index - 1]?.do !== 'walk'
        easeOut = person.acts[index + 1]?.do !== 'walk'
        speedMps = act.speedMps
        if (lengthM > 0) headingRad = Math.atan2(act.to[0] - place[0], act.to[1] - place[1])
        timeS += lengthM / speedMps + ((easeIn ? rampS : 0) + (easeOut ? rampS : 0)) / 2
        place = act.to
        walkedM += lengthM
        break
      }
      case 'climb':
        timeS += act.overS
        heightM = act.toM
        headingRad = act.faceDeg === undefined ? headingRad : act.faceDeg * radians
        break
      case 'stand':
      case 'work':
      case 'crouch':
        timeS += act.forS
        headingRad = act.faceDeg === undefined ? headingRad : act.faceDeg * radians
        break
      case 'stand_until':
        timeS = Math.max(timeS, act.atS)
        headingRad = act.faceDeg === undefined ? headingRad : act.faceDeg * radians
        break
      case 'take_off_helmet':
      case 'put_on_helmet':
        timeS += gestureS
        helmetChanges.push({
          atS: fromS + gestureS / 2,
          state: act.do === 'put_on_helmet' ? 'worn' : 'in_hand',
        })
        break
      case 'pick_up':
      case 'put_down':
        timeS += liftS
        carryChanges.push({ atS: fromS + liftS / 2, carries: act.do === 'pick_up' })
        break
      default:
        act satisfies never
    }
    segments.push({
      do: act.do,
      fromS,
      toS: timeS,
      from,
      to: place,
      headingRad,
      fromHeightM,
      toHeightM: heightM,
      walkedBeforeM,
      speedMps,
      easeIn,
      easeOut,
    })
  })
  segments.push({
    do: 'stand',
    fromS: timeS,
    toS: Number.POSITIVE_INFINITY,
    from: place,
    to: place,
    headingRad,
    fromHeightM: heightM,
    toHeightM: heightM,
    walkedBeforeM: walkedM,
    speedMps: 0,
    easeIn: true,
    easeOut: true,
  })
  return { segments, helmetChanges, carryChanges }
}

function segmentAt(segments: readonly Segment[], timeS: number): Segment {
  const found = segments.find((segment) => timeS < segment.toS) ?? segments.at(-1)
  if (found === undefined) throw new RangeError('a motion has at least its final stand')
  return found
}

/** Metres walked in this segment, and the speed, with half-second ramps where it starts or ends at rest. */
function progress(segment: Segment, timeS: number): { doneM: number; speedMps: number } {
  if (segment.do !== 'walk') return { doneM: 0, speedMps: 0 }
  const spentS = clamp(timeS, segment.fromS, segment.toS) - segment.fromS
  const leftS = segment.toS - segment.fromS - spentS
  const v = segment.speedMps
  const lengthM = Math.hypot(segment.to[0] - segment.from[0], segment.to[1] - segment.from[1])
  if (segment.easeIn && spentS < rampS)
    return { doneM: (v * spentS * spentS) / (2 * rampS), speedMps: (v * spentS) / rampS }
  if (segment.easeOut && leftS < rampS)
    return { doneM: lengthM - (v * leftS * leftS) / (2 * rampS), speedMps: (v * leftS) / rampS }
  return { doneM: v * (spentS - (segment.easeIn ? rampS / 2 : 0)), speedMps: v }
}

/** Mean direction over six tenths of a second, so that nobody turns on the spot in one frame. */
function smoothHeading(segments: readonly Segment[], timeS: number): number {
  let x = 0
  let z = 0
  for (let step = -3; step <= 3; step++) {
    const { headingRad } = segmentAt(segments, Math.max(0, timeS + step * 0.1))
    // The slight turn keeps opposite directions from cancelling exactly in the middle of an about-face.
    x += Math.sin(headingRad + step * 0.02)
    z += Math.cos(headingRad + step * 0.02)
  }
  return Math.atan2(x, z)
}

function lastBefore<T extends { atS: number }>(changes: readonly T[], timeS: number): T | undefined {
  let last: T | undefined
  for (const change of changes) if (change.atS <= timeS) last = change
  return last
}
