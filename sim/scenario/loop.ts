import { compileMachineMotion } from '../world/machine-motion.js'
import { compileMotion } from '../world/motion.js'
import { type Scenario } from './schema.js'

const nearEnoughM = 0.02
const nearEnoughRad = 0.35

/** What keeps a scenario marked `loop` from meeting its own start: all must stand again where and as they began. */
export function loopProblems(scenario: Scenario): string[] {
  if (!scenario.loop) return []
  const problems: string[] = []
  if (scenario.crowd !== undefined)
    problems.push('crowd: a crowd does not come back to its start, so the scenario cannot loop')
  scenario.people.forEach((person, index) => {
    if (person.rides !== undefined) return
    const motion = compileMotion(person)
    const [start, end] = [motion.at(0), motion.at(scenario.durationS)]
    if (
      !samePlace(start, end) ||
      start.helmet !== end.helmet ||
      start.carries !== end.carries ||
      end.speedMps > 0
    ) {
      problems.push(
        `people.${index}.acts: "${person.id}" does not end as it starts, so the scenario cannot loop`,
      )
    }
  })
  scenario.machines.forEach((machine, index) => {
    const motion = compileMachineMotion(machine)
    const [start, end] = [motion.at(0), motion.at(scenario.durationS)]
    if (!samePlace(start, end) || Math.abs(start.liftM - end.liftM) > nearEnoughM) {
      problems.push(
        `machines.${index}.acts: "${machine.id}" does not end as it starts, so the scenario cannot loop`,
      )
    }
  })
  return problems
}

interface Place {
  readonly x: number
  readonly z: number
  readonly headingRad: number
}

function samePlace(a: Place, b: Place): boolean {
  const turn = Math.abs(
    Math.atan2(Math.sin(a.headingRad - b.headingRad), Math.cos(a.headingRad - b.headingRad)),
  )
  return Math.hypot(a.x - b.x, a.z - b.z) < nearEnoughM && turn < nearEnoughRad
}
