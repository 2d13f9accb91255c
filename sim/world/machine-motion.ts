import { type MachineSpec } from '../scenario/schema.js'
import { clamp, lerp, smoothstep } from './easing.js'

export interface MachineState {
  readonly x: number
  readonly z: number
  readonly headingRad: number
  readonly drivenM: number
  readonly liftM: number
}

export interface MachineMotion {
  readonly endS: number
  at(timeS: number): MachineState
}

interface Leg {
  readonly fromS: number
  readonly toS: number
  readonly from: MachineState
  readonly to: MachineState
}

const radians = Math.PI / 180
/** Driving off in a new direction swings the nose round over this time. */
const steerS = 0.9

/** Lays a machine's acts end to end; like a person's motion, a closed formula of time. */
export function compileMachineMotion(machine: MachineSpec): MachineMotion {
  const legs: Leg[] = []
  let state: MachineState = {
    x: machine.start[0],
    z: machine.start[1],
    headingRad: machine.faceDeg * radians,
    drivenM: 0,
    liftM: 0,
  }
  let timeS = 0
  const push = (durationS: number, to: MachineState): void => {
    legs.push({ fromS: timeS, toS: timeS + durationS, from: state, to })
    timeS += durationS
    state = to
  }
  for (const act of machine.acts) {
    switch (act.do) {
      case 'drive': {
        const [dx, dz] = [act.to[0] - state.x, act.to[1] - state.z]
        const lengthM = Math.hypot(dx, dz)
        const headingRad = nearest(state.headingRad, Math.atan2(dx, dz) + (act.reverse ? Math.PI : 0))
        push(lengthM / act.speedMps + 0.8, {
          ...state,
          x: act.to[0],
          z: act.to[1],
          headingRad,
          drivenM: state.drivenM + (act.reverse ? -lengthM : lengthM),
        })
        break
      }
      case 'wait':
        push(act.forS, state)
        break
      case 'wait_until':
        push(Math.max(0, act.atS - timeS), state)
        break
      case 'turn':
        push(act.overS, { ...state, headingRad: nearest(state.headingRad, act.toDeg * radians) })
        break
      case 'lift':
        push(act.overS, { ...state, liftM: act.toM })
        break
      default:
        act satisfies never
    }
  }
  const last = state
  return {
    endS: timeS,
    at: (atS) => {
      const leg = legs.find(({ toS }) => atS < toS)
      return leg === undefined ? last : between(leg, atS)
    },
  }
}

function between(leg: Leg, atS: number): MachineState {
  const spentS = clamp(atS - leg.fromS, 0, leg.toS - leg.fromS)
  const share = eased(spentS, leg.toS - leg.fromS)
  const moves = leg.from.drivenM !== leg.to.drivenM
  const turned = moves ? smoothstep(0, Math.min(steerS, leg.toS - leg.fromS), spentS) : share
  return {
    x: lerp(leg.from.x, leg.to.x, share),
    z: lerp(leg.from.z, leg.to.z, share),
    headingRad: lerp(leg.from.headingRad, leg.to.headingRad, turned),
    drivenM: lerp(leg.from.drivenM, leg.to.drivenM, share),
    liftM: lerp(leg.from.liftM, leg.to.liftM, share),
  }
}

/** Constant speed with 0.8 s ramps at both ends. */
function eased(spentS: number, durationS: number): number {
  const ramp = Math.min(0.8, durationS / 2)
  const cruise = durationS - ramp
  if (cruise <= 0) return 1
  if (spentS < ramp) return (spentS * spentS) / (2 * ramp) / cruise
  if (spentS > durationS - ramp)
    return 1 - ((durationS - spentS) * (durationS - spentS)) / (2 * ramp) / cruise
  return (spentS - ramp / 2) / cruise
}

/** The turn to `target` that goes the short way round. */
function nearest(from: number, target: number): number {
  const turn = Math.PI * 2
  const difference = ((((target - from) % turn) + turn * 1.5) % turn) - Math.PI
  return from + difference
}
