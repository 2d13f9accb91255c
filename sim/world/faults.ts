import { type FaultSpec, type Scenario } from '../scenario/schema.js'
import { secondsOf } from './clock.js'

/** The camera faults that a scenario has switched on in a frame. */
export function faultsAt({ faults }: Scenario, frame: number): readonly FaultSpec[] {
  const timeS = secondsOf(frame)
  return faults.filter(({ fromS, toS }) => timeS >= fromS && timeS < toS)
}
