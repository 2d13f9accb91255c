import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { loadScenario } from '../../sim/scenario/load.js'
import { guardM } from '../../sim/machines/forklift.js'
import { type Scenario, helmetShapes, scenarioSchema, tallestM } from '../../sim/scenario/schema.js'
import { type Truth, type TruthFrame } from '../../sim/truth/format.js'
import { Observer } from '../../sim/truth/observer.js'
import { truthJson, truthOf } from '../../sim/truth/truth.js'
import { SimWorld } from '../../sim/world/world.js'

const crowd = (seed: number): Scenario =>
  scenarioSchema.parse({
    name: 'small-crowd',
    title: 'Small crowd',
    about: 'A few people for the tests of the truth.',
    site: 'dock',
    seed,
    durationS: 1,
    crowd: { count: 4, fromM: [-3, 0], toM: [3, 4] },
    machines: [{ id: 'forklift-1', kind: 'forklift', start: [0, -1], acts: [{ do: 'drive', to: [2, -1] }] }],
  })

describe('the truth of a scenario', () => {
  it('has the same bytes at every run', () => {
    expect(truthJson(truthOf(crowd(7), { frameStride: 8 }))).toBe(
      truthJson(truthOf(crowd(7), { frameStride: 8 })),
    )
  })

  it('changes with the seed', () => {
    expect(truthOf(crowd(7), { frameStride: 25 }).frames).not.toEqual(
      truthOf(crowd(8), { frameStride: 25 }).frames,
    )
  })

  it('of a frame does not depend on the frames asked for before', () => {
    const fresh = new Observer(new SimWorld(crowd(7))).observe(20)
    const used = new Observer(new SimWorld(crowd(7)))
    used.observe(3)
    used.observe(24)
    expect(used.observe(20)).toEqual(fresh)
  })

  it('is JSON that parses to itself', () => {
    const truth = truthOf(crowd(7), { frameStride: 10 })
    expect(JSON.parse(truthJson(truth))).toEqual(truth)
  })
})

describe('the committed demo clips', () => {
  it.each(['dock', 'press-line', 'yard', 'gate'])(
    '%s carries the truth that its scenario has now',
    async (name) => {
      const path = new URL(`../../pipelines/demo/clips/${name}.truth.json`, import.meta.url)
      const committed = JSON.parse(await readFile(path, 'utf8')) as Truth
      const observer = new Observer(new SimWorld(await loadScenario(`demo-${name}`)))
      for (const frame of [0, 200, 450]) {
        expect(committed.frames.find((listed) => listed.frame === frame)).toEqual(
          jsonOf(observer.observe(frame)),
        )
      }
    },
  )
})

describe('the boxes', () => {
  const frames = [0, 12, 24].map((frame) => new Observer(new SimWorld(crowd(3))).observe(frame))

  it('lie in the picture and hold what is visible of the thing', () => {
    for (const { box, visibleBox, visible } of frames.flatMap(({ objects }) => objects)) {
      expect(box[0]).toBeGreaterThanOrEqual(0)
      expect(box[1]).toBeGreaterThanOrEqual(0)
      expect(box[2]).toBeLessThanOrEqual(1280)
      expect(box[3]).toBeLessThanOrEqual(720)
      expect(visible).toSatisfy((share: number) => share >= 0 && share <= 1)
      if (visibleBox === null) continue
      expect(visibleBox[0]).toBeGreaterThanOrEqual(box[0])
      expect(visibleBox[3]).toBeLessThanOrEqual(box[3])
    }
  })

  it('of a head and a torso lie within the person they belong to', () => {
    for (const { objects } of frames) {
      for (const part of objects.filter(({ id }) => id.includes('/'))) {
        const whole = objects.find(({ id }) => id === part.id.split('/')[0])
        expect(whole?.box[0]).toBeLessThanOrEqual(part.box[0])
        expect(whole?.box[1]).toBeLessThanOrEqual(part.box[1])
        expect(whole?.box[2]).toBeGreaterThanOrEqual(part.box[2])
        expect(whole?.box[3]).toBeGreaterThanOrEqual(part.box[3])
      }
    }
  })

  it.each([
    ['long hair', { hair: 'long' }, { kind: 'none' }],
    ['long hair under a helmet', { hair: 'long' }, { kind: 'helmet' }],
    ['a hood', { hair: 'short' }, { kind: 'hood' }],
  ] as const)('of a head end at the chin, also below %s', (_, look, headgear) => {
    const chinOf = (more: object): number => {
      const { objects } = new Observer(
        new SimWorld(
          scenarioSchema.parse({
            ...crowd(3),
            crowd: undefined,
            machines: [],
            people: [{ id: 'ada', start: [0, 5], faceDeg: 20, ...more }],
          }),
        ),
      ).observe(0)
      return objects.find(({ id }) => id === 'ada/head')?.box[3] ?? Number.NaN
    }
    const bald = chinOf({ look: { heightM: 1.75, hair: 'bald' }, headgear: { kind: 'none' } })
    expect(Math.abs(chinOf({ look: { heightM: 1.75, ...look }, headgear }) - bald)).toBeLessThan(0.6)
  })

  it('call a helmet in the hand no helmet, but tell where it is', () => {
    const carrying = scenarioSchema.parse({
      name: 'carrying',
      title: 'Carrying',
      about: 'One person with the helmet in the hand.',
      site: 'dock',
      seed: 1,
      durationS: 1,
      people: [{ id: 'ada', start: [0, 3], headgear: { inHand: true } }],
    })
    const frame = new Observer(new SimWorld(carrying)).observe(0)
    expect(frame.objects.map((object) => object.class).sort()).toEqual(
      ['head', 'person', frame.people[0]?.vest ? 'vest' : 'no_vest'].sort(),
    )
    expect(frame.ignore).toMatchObject([{ id: 'ada/helmet', what: 'helmet_in_hand' }])
  })
})

function jsonOf(frame: TruthFrame): unknown {
  return JSON.parse(JSON.stringify(frame))
}

describe('the driver of a forklift', () => {
  it.each(helmetShapes)('sits below the roof guard, however tall, in a %s helmet', (shape) => {
    const world = new SimWorld(
      scenarioSchema.parse({
        name: 'tall-driver',
        title: 'Tall driver',
        about: 'The tallest person that a scenario may name, on a forklift.',
        site: 'dock',
        seed: 1,
        durationS: 4,
        people: [
          { id: 'ada', start: [0, 0], rides: 'forklift-1', look: { heightM: tallestM }, headgear: { shape } },
        ],
        machines: [{ id: 'forklift-1', kind: 'forklift', start: [0, 0] }],
      }),
    )
    for (const frame of [0, 50, 99]) {
      world.pose(frame)
      const { position } = world.people[0]?.body ?? { position: [] }
      const heights = position.filter((_, index) => index % 3 === 1)
      expect(Math.max(...heights)).toBeGreaterThan(2)
      expect(Math.max(...heights)).toBeLessThan(guardM - 0.02)
    }
  })
})
