import { framesPerSecond } from '../world/clock.js'
import { faultsAt } from '../world/faults.js'
import { type SimWorld } from '../world/world.js'
import { type TruthEvent } from './format.js'
import { distanceToMachineM, zonesAt } from './ground.js'

/**
 * What truly happens, as spans `[fromS, toS)` to the frame. It comes from the world alone: whether a camera could see
 * it is in the frames (`observed`, `visible`, `faults`).
 */
export function timelineOf(world: SimWorld): TruthEvent[] {
  const spans = new Spans()
  for (let frame = 0; frame < world.frameCount; frame++) {
    for (const person of world.people) {
      const who = person.spec.id
      const { x, z, helmet } = world.personAt(person, frame)
      for (const zone of zonesAt(world, x, z)) spans.mark(frame, { kind: 'in_zone', who, zone })
      if (helmet !== 'worn') spans.mark(frame, { kind: 'helmet_off', who, state: helmet })
      for (const model of world.machines) {
        const distanceM = distanceToMachineM(world, model, frame, x, z)
        if (!model.spec.running || model.spec.id === person.spec.rides || distanceM >= model.spec.nearM)
          continue
        spans.mark(frame, { kind: 'near_machine', who, machine: model.spec.id, closestM: distanceM })
      }
    }
    for (const model of world.machines) {
      const { x, z } = world.machineAt(model, frame)
      for (const zone of zonesAt(world, x, z))
        spans.mark(frame, { kind: 'in_zone', who: model.spec.id, zone })
    }
    for (const { kind } of faultsAt(world.scenario, frame))
      spans.mark(frame, { kind: 'camera_fault', fault: kind })
  }
  return spans.events()
}

type What = TruthEvent extends infer Event
  ? Event extends TruthEvent
    ? Omit<Event, 'fromS' | 'toS'>
    : never
  : never

/** Joins marks of consecutive frames into spans. */
class Spans {
  readonly #open = new Map<string, { what: What; fromFrame: number; lastFrame: number }>()
  readonly #closed: { what: What; fromFrame: number; lastFrame: number }[] = []

  mark(frame: number, what: What): void {
    const key = keyOf(what)
    const span = this.#open.get(key)
    if (span !== undefined && span.lastFrame >= frame - 1) {
      span.lastFrame = frame
      if (what.kind === 'near_machine' && span.what.kind === 'near_machine') {
        span.what = { ...what, closestM: Math.min(what.closestM, span.what.closestM) }
      }
      return
    }
    const opened = { what, fromFrame: frame, lastFrame: frame }
    this.#open.set(key, opened)
    this.#closed.push(opened)
  }

  events(): TruthEvent[] {
    return this.#closed.map(({ what, fromFrame, lastFrame }) => {
      const span = { fromS: fromFrame / framesPerSecond, toS: (lastFrame + 1) / framesPerSecond }
      return what.kind === 'near_machine'
        ? { ...what, closestM: Math.round(what.closestM * 100) / 100, ...span }
        : { ...what, ...span }
    })
  }
}

function keyOf(what: What): string {
  switch (what.kind) {
    case 'in_zone':
      return `zone ${what.who} ${what.zone}`
    case 'helmet_off':
      return `helmet ${what.who} ${what.state}`
    case 'near_machine':
      return `near ${what.who} ${what.machine}`
    case 'camera_fault':
      return `fault ${what.fault}`
    default:
      return what satisfies never
  }
}
