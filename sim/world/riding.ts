import { footPlateM, seatZM } from '../machines/forklift.js'
import { type PersonSpec } from '../scenario/schema.js'
import { type MachineMotion } from './machine-motion.js'
import { type HelmetState, type Motion } from './motion.js'

/** A driver's motion is the machine's. */
export function ridingMotion(spec: PersonSpec, machine: MachineMotion): Motion {
  const helmet: HelmetState = spec.headgear.kind === 'helmet' ? 'worn' : 'none'
  return {
    endS: machine.endS,
    helmetChanges: [{ atS: -1e9, state: helmet }],
    at: (timeS) => {
      const { x, z, headingRad } = machine.at(timeS)
      return {
        x: x + Math.sin(headingRad) * seatZM,
        z: z + Math.cos(headingRad) * seatZM,
        heightM: footPlateM,
        headingRad,
        act: 'ride',
        actFromS: 0,
        actToS: Number.POSITIVE_INFINITY,
        walkedM: 0,
        speedMps: 0,
        helmet,
        carries: false,
      }
    },
  }
}
