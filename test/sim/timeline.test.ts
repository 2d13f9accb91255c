import { expect, it } from 'vitest'
import { loadScenario } from '../../sim/scenario/load.js'
import { type TruthEvent } from '../../sim/truth/format.js'
import { Observer } from '../../sim/truth/observer.js'
import { timelineOf } from '../../sim/truth/timeline.js'
import { SimWorld } from '../../sim/world/world.js'

async function worldOf(name: string): Promise<SimWorld> {
  return new SimWorld(await loadScenario(name))
}

const spanS = ({ fromS, toS }: TruthEvent): number => toS - fromS

it('tells eight seconds without a helmet from two', async () => {
  const off = timelineOf(await worldOf('helmet-off-long')).filter(({ kind }) => kind === 'helmet_off')
  expect(off.map((event) => event.kind === 'helmet_off' && [event.who, event.state])).toEqual([
    ['ada', 'in_hand'],
    ['ada', 'in_hand'],
  ])
  // The helmet leaves the head in the middle of a gesture of 1.6 s.
  expect(off[0]).toMatchObject({ fromS: 5.8, toS: 13.8 })
  expect(off.map(spanS)[1]).toBeCloseTo(2, 5)
})

it('knows who is in the press zone, who walks its edge and who stops short of it', async () => {
  const inZone = timelineOf(await worldOf('zone-entry')).filter(
    (event) => event.kind === 'in_zone' && event.zone === 'press-zone',
  )
  expect(inZone.map((event) => event.kind === 'in_zone' && event.who)).toEqual(['ada', 'ada'])
  const [longStay, shortStay] = inZone.map(spanS)
  expect(longStay).toBeGreaterThan(8)
  expect(shortStay).toBeGreaterThan(0.5)
  expect(shortStay).toBeLessThan(3)
})

it('counts nearness to machines that run only, with the closest distance', async () => {
  const near = timelineOf(await worldOf('near-machine')).filter((event) => event.kind === 'near_machine')
  expect(near.map(({ who, machine }) => [who, machine])).toEqual([['ada', 'excavator-1']])
  expect(near[0]?.closestM).toBeGreaterThan(0)
  expect(near[0]?.closestM).toBeLessThan(1.9)
  expect(near[0]?.fromS).toBeGreaterThan(5)
  expect(near.map(spanS)[0]).toBeGreaterThan(5)
})

it('keeps what happened apart from what could be seen under a covered lens', async () => {
  const world = await worldOf('camera-covered')
  const events = timelineOf(world)
  expect(events.find(({ kind }) => kind === 'camera_fault')).toMatchObject({
    fault: 'covered',
    fromS: 10,
    toS: 20,
  })
  const off = events.find(({ kind }) => kind === 'helmet_off')
  expect(off?.fromS).toBeGreaterThan(10)
  expect(off?.toS).toBeLessThan(20)

  const observer = new Observer(world)
  const adaAt = (timeS: number) => observer.observe(timeS * 25).people.find(({ id }) => id === 'ada')
  expect(adaAt(9)).toMatchObject({ helmet: 'worn', observed: 'worn' })
  expect(adaAt(14)).toMatchObject({ helmet: 'in_hand', observed: 'not_visible' })
  expect(adaAt(22)).toMatchObject({ helmet: 'worn', observed: 'worn' })
})

it('says not_visible while a head is behind something', async () => {
  const observer = new Observer(await worldOf('occlusion-flicker'))
  const seen = new Set<string>()
  for (let frame = 0; frame < 1000; frame += 40) {
    for (const { id, observed } of observer.observe(frame).people) seen.add(`${id} ${observed}`)
  }
  expect(seen).toContain('ada worn')
  expect(seen).toContain('ada not_visible')
  expect(seen).not.toContain('ada none')
})
