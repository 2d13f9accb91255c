import {
  type Headgear,
  type Lighting,
  type MachineKind,
  type Scenario,
  type ScenarioInput,
  type SiteName,
  faultKinds,
  helmetShapes,
  machineKinds,
  scenarioSchema,
  siteNames,
} from '../scenario/schema.js'
import { siteBuilders } from '../sites/index.js'
import { type Site } from '../sites/site.js'
import { Random } from '../world/random.js'

const lightings: readonly Lighting[] = ['day', 'day', 'day', 'dusk', 'night']
const mildFaults = faultKinds.filter(
  (kind) => kind === 'noise' || kind === 'blur' || kind === 'blocky' || kind === 'exposure',
)
const durationS = 20

/** What random scenes are full of: all that the classes name, or crews in helmets and in caps of the same colours. */
export const subjects = ['site', 'headgear'] as const
export type Subject = (typeof subjects)[number]

/**
 * A scene that no scenario of the library contains: any of the sites, light and weather, another camera, random people and
 * machines. The same seed, index, sites and subject give the same scene.
 */
export function randomScene(
  seed: number,
  index: number,
  { sites = siteNames, subject = 'site' }: { sites?: readonly SiteName[]; subject?: Subject } = {},
): Scenario {
  const cast = casts[subject]
  const random = new Random('scene', seed, index)
  const siteName = random.pick(sites)
  const site = siteBuilders[siteName]()
  const people = random.chance(0.5) ? [carrier(site, random)] : []
  const machines = machinesFor(site, cast.machineCounts, random)
  const input: ScenarioInput = {
    name: `scene-${index}`,
    title: `random scene ${index}`,
    about: 'Drawn for the training set.',
    site: siteName,
    seed: random.int(1_000_000),
    durationS,
    lighting: random.pick(lightings),
    rain: !site.indoor && random.chance(0.2) ? random.between(0.3, 1) : 0,
    camera: cameraNear(site, random),
    crowd: {
      count: random.pick(cast.crowdCounts),
      ...ground(site),
      helmetShare: random.pick([0.25, 0.5, 0.6, 0.75]),
      vestShare: random.between(0.2, 0.9),
      // Where most bare heads wear a cap in the colour of a helmet, a detector learns to doubt every helmet.
      colors: random.pick(['usual', 'usual', 'usual', 'any']),
    },
    people: [...people, ...driversOf(machines, random), ...workersAt(site, cast, random)],
    machines,
    faults: random.chance(0.15)
      ? [{ kind: random.pick(mildFaults), fromS: 0, toS: durationS, strength: random.between(0.02, 0.3) }]
      : [],
  }
  return scenarioSchema.parse(input)
}

/** Somewhere on the side of the site that is built to be seen. */
function cameraNear(site: Site, random: Random): NonNullable<ScenarioInput['camera']> {
  const [x, , z] = site.camera.positionM
  const near = random.between(0.55, 1.15)
  return {
    positionM: [
      x * near + random.between(-3.5, 3.5),
      random.between(2.2, 5.6),
      z * near + random.between(-1, 1),
    ],
    lookAtM: [random.between(-2, 2), random.between(0.7, 1.3), random.between(-1.2, 1.4)],
    fovDeg: random.between(28, 52),
  }
}

function ground(site: Site): { fromM: [number, number]; toM: [number, number] } {
  return { fromM: [...site.groundM.fromM], toM: [...site.groundM.toM] }
}

function placeOn(site: Site, random: Random): [number, number] {
  const { fromM, toM } = site.groundM
  return [random.between(fromM[0], toM[0]), random.between(fromM[1], toM[1])]
}

/** One who carries the helmet in the hand or a carton, the cases a random crowd lacks. */
function carrier(site: Site, random: Random): PersonInput {
  const inHand = random.chance(0.6)
  return {
    id: 'carrier',
    start: placeOn(site, random),
    faceDeg: random.between(0, 360),
    headgear: { kind: 'helmet', color: random.pick(['yellow', 'white', 'orange', 'red', 'blue']), inHand },
    acts: [
      ...(inHand ? [] : [{ do: 'pick_up' as const }]),
      { do: 'walk', to: placeOn(site, random) },
      { do: 'walk', to: placeOn(site, random) },
      { do: 'walk', to: placeOn(site, random) },
    ],
  }
}

/** Drivers under a roof guard, another case that a random crowd lacks. */
function driversOf(machines: readonly MachineInput[], random: Random): PersonInput[] {
  return machines
    .filter(({ kind }) => kind === 'forklift' && random.chance(0.7))
    .map(({ id, start }) => ({
      id: `driver-of-${id}`,
      start,
      rides: id,
      headgear: {
        kind: random.pick(['helmet', 'helmet', 'helmet', 'none', 'none', 'cap'] as const),
        color: random.pick(['yellow', 'white', 'orange', 'red', 'red', 'blue', 'black'] as const),
      },
    }))
}

/** At the far side, mostly with their backs to the camera, where a helmet differs from hair or a cap by little. */
function workersAt(site: Site, cast: Cast, random: Random): PersonInput[] {
  const { fromM, toM } = site.groundM
  return Array.from({ length: cast.workerCount(random) }, (_, index) => {
    const faceDeg = cast.workerFaceDeg(random)
    const kind = random.pick(cast.headgear)
    return {
      id: `worker-${index + 1}`,
      start: [random.between(fromM[0], toM[0]), fromM[1] + random.between(...cast.workersFromFarEdgeM)],
      faceDeg,
      headgear: {
        kind,
        color:
          kind === 'helmet' && random.chance(cast.helmetsLikeWalls)
            ? likeTheWalls[site.name]
            : random.pick(kind === 'helmet' ? helmetColorsAtWork : cast.capColors),
        shape: random.pick(helmetShapes),
      },
      acts: [{ do: random.pick(['work', 'work', 'stand'] as const), forS: durationS, faceDeg }],
    }
  })
}

/** Who and what stands in the scenes of one subject. Lists are picked from evenly, so what is named twice comes twice as often. */
interface Cast {
  readonly crowdCounts: readonly number[]
  readonly machineCounts: readonly number[]
  readonly workerCount: (random: Random) => number
  readonly workerFaceDeg: (random: Random) => number
  /** Least and most distance of a worker from the far edge of the ground, towards the camera. */
  readonly workersFromFarEdgeM: readonly [number, number]
  readonly headgear: readonly Headgear['kind'][]
  /** Share of the workers' helmets that have the colour of the wall behind them. */
  readonly helmetsLikeWalls: number
  readonly capColors: readonly NonNullable<Headgear['color']>[]
}

const casts: Readonly<Record<Subject, Cast>> = {
  site: {
    crowdCounts: [2, 3, 4, 5, 6, 7, 8, 9],
    machineCounts: [0, 1, 2, 2, 3, 4],
    workerCount: (random) => random.pick([1, 2, 3, 4]),
    workerFaceDeg: (random) => random.between(120, 240),
    workersFromFarEdgeM: [-1.5, 2.5],
    // From behind, a cap in the colour of a helmet is next to a helmet: where either is as likely, a detector that sees few of them names both.
    headgear: [...Array<'helmet'>(6).fill('helmet'), 'none', 'none', 'cap', 'beanie'],
    helmetsLikeWalls: 0.4,
    capColors: ['red', 'blue', 'grey', 'navy', 'black', 'black', 'white'],
  },
  // Enough of them that the shape has to be learned: no colour says which is which.
  headgear: {
    crowdCounts: [1, 2, 3, 4],
    machineCounts: [0, 0, 1, 2],
    workerCount: () => 7,
    workerFaceDeg: (random) => (random.chance(0.6) ? random.between(120, 240) : random.between(0, 360)),
    workersFromFarEdgeM: [-1.2, 1.5],
    headgear: [...Array<'helmet'>(5).fill('helmet'), 'none', 'none', 'cap', 'cap', 'cap', 'beanie'],
    helmetsLikeWalls: 0.5,
    capColors: ['red', 'red', 'blue', 'grey', 'navy', 'black', 'white', 'yellow', 'orange', 'green'],
  },
}
const helmetColorsAtWork = ['white', 'white', 'yellow', 'orange', 'red', 'blue', 'green'] as const
const likeTheWalls = { dock: 'white', 'press-line': 'blue', yard: 'orange', gate: 'white' } as const

const usual: Readonly<Record<Site['name'], readonly MachineKind[]>> = {
  dock: ['forklift', 'forklift', 'truck'],
  'press-line': ['press', 'press', 'forklift'],
  yard: [
    'excavator',
    'excavator',
    'crane',
    'crane',
    'crane',
    'wheel-loader',
    'wheel-loader',
    'dump-truck',
    'forklift',
  ],
  gate: ['truck', 'truck', 'dump-truck', 'wheel-loader', 'forklift', 'excavator', 'crane'],
}
const small: readonly MachineKind[] = ['forklift', 'press']
const colors = ['yellow', 'orange', 'red', 'blue', 'white', 'green', 'grey'] as const
// Named as often as it is to be drawn: teal and green, as presses of the library are.
const pressColors = ['teal', 'teal', 'green', 'green', 'blue', 'grey', 'white', 'yellow'] as const

type PersonInput = NonNullable<ScenarioInput['people']>[number]
type MachineInput = NonNullable<ScenarioInput['machines']>[number]

function machinesFor(site: Site, counts: readonly number[], random: Random): MachineInput[] {
  const count = random.pick(counts)
  // Machines at work together hide parts of each other and often are of one make: the hardest boxes.
  const fleet = random.chance(0.5) ? { color: random.pick(colors) } : undefined
  const inLine = random.chance(0.5)
  const machines: MachineInput[] = []
  for (let index = 0; index < count; index++) {
    const kind = random.chance(0.8) ? random.pick(usual[site.name]) : random.pick(machineKinds)
    const before = machines.at(-1)
    machines.push({
      id: `machine-${index + 1}`,
      kind,
      start: inLine && before ? behind(before.start, kind, random) : placeFor(kind, site, index, random),
      faceDeg: facing(kind, random.between(0, 360)),
      ...(fleet ??
        (random.chance(0.5) ? { color: random.pick(kind === 'press' ? pressColors : colors) } : {})),
      acts: liftOf(kind, random),
    })
  }
  return machines
}

/**
 * Three presses in four are set up as a line is, within 30 degrees of its front; what drives stands any way.
 * `anyDeg`, 0 to 360, is the one draw that decides both whether and how far.
 */
function facing(kind: MachineKind, anyDeg: number): number {
  return kind === 'press' && anyDeg < 270 ? (330 + (anyDeg / 270) * 60) % 360 : anyDeg
}

function placeFor(kind: MachineKind, site: Site, index: number, random: Random): [number, number] {
  const { fromM, toM } = site.groundM
  return [
    random.between(fromM[0] - 2, toM[0] + 2) + index * 0.5,
    small.includes(kind)
      ? random.between(fromM[1] - 1, toM[1])
      : random.between(fromM[1] - (kind === 'crane' ? farCraneM : 4.5), fromM[1] + 1.5),
  ]
}

/** Seen from the cameras, which look towards -z. */
function behind([x, z]: readonly [number, number], kind: MachineKind, random: Random): [number, number] {
  return [x + random.between(-2.6, 2.6), z - random.between(2.8, kind === 'crane' ? farCraneM : 5.5)]
}

/** A crane is seen over what stands before it, so it need not be near. */
const farCraneM = 12

function liftOf(kind: MachineKind, random: Random): NonNullable<MachineInput['acts']> {
  if (kind === 'forklift') return [{ do: 'lift', toM: random.between(0, 1.8), overS: 4 }]
  const lifts = kind === 'wheel-loader' || kind === 'dump-truck'
  return lifts && random.chance(0.6) ? [{ do: 'lift', toM: random.between(0, 2.4), overS: 4 }] : []
}
