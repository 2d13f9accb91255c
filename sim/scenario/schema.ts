import { z } from 'zod'
import { clothColors, hairColors, helmetColors, skinTones } from './palette.js'

const metres = z.number().min(-200).max(200)
/** The tallest person that a scenario may name, metres. */
export const tallestM = 2.05
const pointM = z
  .tuple([metres, metres])
  .describe('Ground point [x, z] in metres; x right, z towards the camera side.')
const seconds = z.number().min(0).max(600)
const id = z
  .string()
  .regex(/^[a-z][a-z0-9-]*$/, 'lower case letters, digits and dashes, starting with a letter')

export const siteNames = ['dock', 'press-line', 'yard', 'gate'] as const
export const lightings = ['day', 'dusk', 'night'] as const
export const headgearKinds = ['helmet', 'cap', 'hood', 'beanie', 'none'] as const
export const helmetShapes = ['classic', 'full-brim', 'vented'] as const
export const machineKinds = [
  'forklift',
  'excavator',
  'press',
  'crane',
  'wheel-loader',
  'dump-truck',
  'truck',
] as const
export const faultKinds = [
  'noise',
  'blur',
  'blocky',
  'exposure',
  'covered',
  'moved',
  'frozen',
  'black',
] as const

const actSchema = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('walk'), to: pointM, speedMps: z.number().min(0.3).max(3).default(1.3) }),
  z.strictObject({ do: z.literal('stand'), forS: seconds, faceDeg: z.number().optional() }),
  z.strictObject({ do: z.literal('stand_until'), atS: seconds, faceDeg: z.number().optional() }),
  z.strictObject({ do: z.literal('work'), forS: seconds, faceDeg: z.number().optional() }),
  z.strictObject({ do: z.literal('crouch'), forS: seconds, faceDeg: z.number().optional() }),
  z.strictObject({
    do: z.literal('climb'),
    toM: z.number().min(0).max(6),
    overS: seconds.min(0.5),
    faceDeg: z.number().optional(),
  }),
  z.strictObject({ do: z.literal('take_off_helmet') }),
  z.strictObject({ do: z.literal('put_on_helmet') }),
  z.strictObject({ do: z.literal('pick_up') }),
  z.strictObject({ do: z.literal('put_down') }),
])

const lookSchema = z.strictObject({
  heightM: z.number().min(1.45).max(tallestM),
  build: z.number().min(0.8).max(1.3).describe('Girth; 1 is average.'),
  skin: z.enum(skinTones),
  shirt: z.enum(clothColors),
  trousers: z.enum(clothColors),
  vest: z.enum(['yellow', 'orange', 'jacket-yellow', 'jacket-orange', 'none']),
  hair: z.enum(['short', 'long', 'bald']),
  hairColor: z.enum(hairColors),
})

const headgearSchema = z
  .strictObject({
    kind: z.enum(headgearKinds).default('helmet'),
    color: z.enum(helmetColors).default('yellow'),
    shape: z.enum(helmetShapes).default('classic'),
    inHand: z.boolean().default(false).describe('Carried in the right hand when the scenario starts.'),
  })
  .refine((gear) => gear.kind === 'helmet' || !gear.inHand, {
    path: ['inHand'],
    message: 'only a helmet is carried in hand',
  })

const personSchema = z.strictObject({
  id,
  start: pointM,
  faceDeg: z.number().default(0).describe('0 looks along +z, 90 along +x.'),
  look: lookSchema.partial().default({}).describe('What is left out is drawn from the seed.'),
  headgear: headgearSchema.prefault({}),
  rides: id
    .optional()
    .describe('A forklift of this scenario that this person drives; then acts are not used.'),
  acts: z.array(actSchema).default([]),
})

const machineSchema = z.strictObject({
  id,
  kind: z.enum(machineKinds),
  start: pointM,
  faceDeg: z.number().default(0),
  color: z.enum(clothColors).optional(),
  running: z
    .boolean()
    .default(true)
    .describe('A press that is not running does not stroke; near_machine counts running ones.'),
  nearM: z.number().min(0).max(10).default(2).describe('Closer than this to its outline is near.'),
  acts: z
    .array(
      z.discriminatedUnion('do', [
        z.strictObject({
          do: z.literal('drive'),
          to: pointM,
          speedMps: z.number().min(0.3).max(12).default(2),
          reverse: z.boolean().default(false),
        }),
        z.strictObject({ do: z.literal('wait'), forS: seconds }),
        z.strictObject({ do: z.literal('wait_until'), atS: seconds }),
        z.strictObject({ do: z.literal('turn'), toDeg: z.number(), overS: seconds.min(0.2).default(2) }),
        z.strictObject({
          do: z.literal('lift'),
          toM: z.number().min(0).max(4),
          overS: seconds.min(0.2).default(2),
        }),
      ]),
    )
    .default([]),
})

const zoneSchema = z.strictObject({ id, polygonM: z.array(pointM).min(3) })

const faultSchema = z
  .strictObject({
    kind: z.enum(faultKinds),
    fromS: seconds,
    toS: seconds,
    strength: z.number().min(0).max(1).default(0.8),
  })
  .refine((fault) => fault.toS > fault.fromS, { path: ['toS'], message: 'must be after fromS' })

const cameraSchema = z.strictObject({
  positionM: z.tuple([metres, z.number().min(0.5).max(40), metres]),
  lookAtM: z.tuple([metres, z.number().min(-5).max(20), metres]),
  fovDeg: z.number().min(10).max(100).default(36).describe('Vertical field of view.'),
})

const crowdSchema = z.strictObject({
  count: z.number().int().min(1).max(60),
  fromM: pointM,
  toM: pointM,
  helmetShare: z.number().min(0).max(1).default(0.7),
  vestShare: z.number().min(0).max(1).default(0.6),
  colors: z
    .enum(['any', 'usual'])
    .default('any')
    .describe(
      'Of headgear: `any` of the palette for all, the hardest case; `usual` has bright helmets, fewer caps and hoods, and these dark.',
    ),
})

/** The one description of a scenario: type, defaults, check and documentation. */
export const scenarioSchema = z
  .strictObject({
    name: id,
    title: z.string().min(3),
    about: z.string().min(10).describe('What the scenario is for, one or two sentences.'),
    site: z.enum(siteNames),
    seed: z.number().int().min(0),
    durationS: z.number().min(0.2).max(120),
    lighting: z.enum(lightings).default('day'),
    rain: z.number().min(0).max(1).default(0),
    loop: z.boolean().default(false).describe('The end must meet the start, so that the clip can repeat.'),
    heldOut: z.boolean().default(false).describe('Never used for training.'),
    camera: cameraSchema.optional().describe("The site's own camera if left out."),
    zones: z.array(zoneSchema).optional().describe("The site's own zones if left out."),
    people: z.array(personSchema).default([]),
    crowd: crowdSchema.optional(),
    machines: z.array(machineSchema).default([]),
    faults: z.array(faultSchema).default([]),
  })
  .superRefine((scenario, context) => {
    const seen = new Set<string>()
    for (const [kind, list] of [
      ['people', scenario.people],
      ['machines', scenario.machines],
    ] as const) {
      list.forEach((item, index) => {
        if (seen.has(item.id))
          context.addIssue({ code: 'custom', path: [kind, index, 'id'], message: `id "${item.id}" is taken` })
        seen.add(item.id)
      })
    }
    scenario.people.forEach(({ id, rides, headgear, acts }, index) => {
      const refuse = (path: (string | number)[], message: string): void =>
        context.addIssue({ code: 'custom', path: ['people', index, ...path], message })
      if (scenario.crowd !== undefined && /^crowd-\d+$/.test(id))
        refuse(['id'], `"${id}" is a name of the crowd's`)
      acts.forEach((act, at) => {
        if (act.do.endsWith('_helmet') && headgear.kind !== 'helmet')
          refuse(['acts', at, 'do'], `"${id}" has no helmet: headgear.kind is ${headgear.kind}`)
      })
      if (rides === undefined) return
      if (!scenario.machines.some((machine) => machine.id === rides && machine.kind === 'forklift'))
        refuse(['rides'], `no forklift is called "${rides}"`)
      if (acts.length > 0) refuse(['acts'], 'one who drives has no acts of its own')
      if (headgear.inHand) refuse(['headgear', 'inHand'], 'one who drives has both hands full')
    })
    scenario.faults.forEach((fault, index) => {
      if (fault.toS > scenario.durationS)
        context.addIssue({
          code: 'custom',
          path: ['faults', index, 'toS'],
          message: 'is after the end of the scenario',
        })
    })
  })

export type Scenario = Readonly<z.infer<typeof scenarioSchema>>
export type ScenarioInput = z.input<typeof scenarioSchema>
export type SiteName = (typeof siteNames)[number]
export type Lighting = (typeof lightings)[number]
export type PersonSpec = Scenario['people'][number]
export type PersonAct = PersonSpec['acts'][number]
export type Look = z.infer<typeof lookSchema>
export type Headgear = PersonSpec['headgear']
export type MachineSpec = Scenario['machines'][number]
export type MachineAct = MachineSpec['acts'][number]
export type MachineKind = MachineSpec['kind']
export type ZoneSpec = z.infer<typeof zoneSchema>
export type FaultSpec = z.infer<typeof faultSchema>
export type FaultKind = FaultSpec['kind']
export type CameraSpec = z.infer<typeof cameraSchema>
