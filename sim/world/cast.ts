import { type ClothColor, hairColors, helmetColors, skinTones } from '../scenario/palette.js'
import { type Look, type PersonSpec, type Scenario, helmetShapes } from '../scenario/schema.js'
import { type Habit } from './pose.js'
import { Random } from './random.js'

const workCloth: readonly ClothColor[] = [
  'navy',
  'blue',
  'grey',
  'charcoal',
  'khaki',
  'olive',
  'brown',
  'black',
  'green',
  'red',
  'white',
  'teal',
]

const softHeadgear = {
  any: ['none', 'none', 'cap', 'hood', 'beanie'],
  usual: ['none', 'none', 'none', 'none', 'cap', 'hood', 'beanie'],
} as const

const headgearColors = {
  any: { helmet: helmetColors, soft: helmetColors },
  usual: {
    helmet: ['yellow', 'yellow', 'white', 'white', 'orange', 'red', 'blue', 'green'],
    soft: ['black', 'black', 'grey', 'navy', 'navy', 'red'],
  },
} as const

/** Fills what a person's look leaves open from the scenario's seed and the person's id. */
export function lookOf(seed: number, person: PersonSpec): Required<Look> {
  const random = new Random(seed, 'look', person.id)
  const drawn: Required<Look> = {
    heightM: random.between(1.58, 1.92),
    build: random.between(0.9, 1.2),
    skin: random.pick(skinTones),
    shirt: random.pick(workCloth),
    trousers: random.pick(['navy', 'blue', 'grey', 'charcoal', 'khaki', 'olive', 'black'] as const),
    vest: random.pick(['yellow', 'orange', 'jacket-yellow', 'none'] as const),
    hair: random.pick(['short', 'short', 'short', 'long', 'bald'] as const),
    hairColor: random.pick(hairColors),
  }
  const given = Object.fromEntries(Object.entries(person.look).filter(([, value]) => value !== undefined))
  return { ...drawn, ...given }
}

export function habitOf(seed: number, personId: string): Habit {
  const random = new Random(seed, 'habit', personId)
  return {
    phaseRad: random.between(0, 2 * Math.PI),
    lookAround: random.between(0.15, 0.5),
    swing: random.between(0.25, 0.45),
    stoop: random.between(-0.02, 0.07),
  }
}

/** The scenario's own people, then its crowd: walkers between random points of a rectangle. */
export function castOf(scenario: Scenario): readonly PersonSpec[] {
  return [...scenario.people, ...crowdOf(scenario)]
}

function crowdOf(scenario: Scenario): PersonSpec[] {
  const crowd = scenario.crowd
  if (crowd === undefined) return []
  return Array.from({ length: crowd.count }, (_, index) => {
    const random = new Random(scenario.seed, 'crowd', index)
    const place = (): [number, number] => [
      random.between(crowd.fromM[0], crowd.toM[0]),
      random.between(crowd.fromM[1], crowd.toM[1]),
    ]
    const acts: PersonSpec['acts'] = []
    for (let spentS = 0; spentS < scenario.durationS;) {
      if (random.chance(0.7)) {
        acts.push({ do: 'walk', to: place(), speedMps: random.between(0.8, 1.5) })
        spentS += 3
      } else {
        const forS = random.between(1.5, 5)
        acts.push({ do: random.pick(['stand', 'stand', 'work', 'crouch'] as const), forS })
        spentS += forS
      }
    }
    const helmet = random.chance(crowd.helmetShare)
    return {
      id: `crowd-${index + 1}`,
      start: place(),
      faceDeg: random.between(0, 360),
      acts,
      look: {
        vest: random.chance(crowd.vestShare)
          ? random.pick(['yellow', 'orange', 'jacket-yellow', 'jacket-orange'] as const)
          : 'none',
      },
      headgear: {
        kind: helmet ? 'helmet' : random.pick(softHeadgear[crowd.colors]),
        color: random.pick(headgearColors[crowd.colors][helmet ? 'helmet' : 'soft']),
        shape: random.pick(helmetShapes),
        inHand: false,
      },
    }
  })
}
