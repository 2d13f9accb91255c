import type { ExecutionProvider } from '../../config/inference.js'
import type { GraphOptimization } from '../../repository/model-config.js'

/** How a model is run in a trial. */
export type Configuration = Readonly<{
  /** Name of the form of the model: `original`, `int8`, `int8 640x384`. */
  form: string
  provider: ExecutionProvider
  /** Threads inside a session; CPU alone. */
  intraOpThreads: number
  /** Threads of a session wait busily for the next run. */
  spinning: boolean
  graph: GraphOptimization
  /** ONNX Runtime keeps memory of the CPU between runs. */
  arena: boolean
  /** Branches of the graph at the same time. */
  parallel: boolean
  instances: number
  maxBatch: number
  queueDelayUs: number
}>

/** Values that are tried, by what they are of; each at least one, in their order where they have one. */
export type SearchSpace = Readonly<{ [Name in keyof Configuration]: readonly Configuration[Name][] }>

/** Dimensions in the order in which figures and tables have them. */
export const dimensions = [
  'form',
  'provider',
  'intraOpThreads',
  'spinning',
  'graph',
  'arena',
  'parallel',
  'instances',
  'maxBatch',
  'queueDelayUs',
] as const satisfies readonly (keyof Configuration)[]

/** Those whose values lie on a scale: neighbours are alike. */
const scales: ReadonlySet<keyof Configuration> = new Set([
  'intraOpThreads',
  'graph',
  'instances',
  'maxBatch',
  'queueDelayUs',
])

/** A configuration by the places of its values, 0..1 on a scale; a kind has no place but its own. */
export type SpacePlace = readonly Readonly<{ at: number; isOnScale: boolean }>[]

/**
 * Every configuration of a space that is no other one under another name: threads that are alone do not wait for each other, and a batch of
 * one waits for nobody.
 *
 * @param cores - more threads than twice as many are left out.
 */
export function configurationsOf(space: SearchSpace, cores: number): readonly Configuration[] {
  const all = dimensions.reduce<readonly Partial<Configuration>[]>(
    (some, name) => some.flatMap((each) => space[name].map((value) => ({ ...each, [name]: value }))),
    [{}],
  ) as readonly Configuration[]
  const seen = new Map<string, Configuration>()
  for (const each of all) {
    const own = plain(each, space)
    if (own.provider === 'cpu' && own.instances * own.intraOpThreads > 2 * cores) continue
    const key = keyOf(own)
    if (!seen.has(key)) seen.set(key, own)
  }
  return [...seen.values()]
}

/** What makes no difference as the first value of the space has it. */
function plain(each: Configuration, space: SearchSpace): Configuration {
  const onCpu = each.provider === 'cpu'
  return {
    ...each,
    ...(onCpu ? {} : { intraOpThreads: space.intraOpThreads[0]!, arena: space.arena[0]! }),
    ...(onCpu && each.intraOpThreads > 1 ? {} : { spinning: space.spinning[0]! }),
    ...(each.maxBatch > 1 ? {} : { queueDelayUs: space.queueDelayUs[0]! }),
  }
}

/** The same for the same configuration. */
export function keyOf(configuration: Configuration): string {
  return dimensions.map((name) => String(configuration[name])).join('|')
}

/** For people: what of a configuration is decided in its space. */
export function configurationText(configuration: Configuration, space?: SearchSpace): string {
  const { form, provider, intraOpThreads, spinning, graph, arena, parallel, instances, maxBatch } =
    configuration
  const parts: Readonly<Record<keyof Configuration, string>> = {
    form,
    provider,
    intraOpThreads: `${intraOpThreads} thread${intraOpThreads === 1 ? '' : 's'}`,
    spinning: spinning ? 'spinning' : 'not spinning',
    graph: `graph ${graph}`,
    arena: arena ? 'arena' : 'no arena',
    parallel: parallel ? 'parallel' : 'sequential',
    instances: `${instances} instance${instances === 1 ? '' : 's'}`,
    maxBatch: `batch ${maxBatch}`,
    queueDelayUs: `delay ${configuration.queueDelayUs / 1e3} ms`,
  }
  return dimensions
    .filter((name) => name === 'form' || space === undefined || space[name].length > 1)
    .map((name) => parts[name])
    .join(', ')
}

/** Where a configuration lies among the values of its space. */
export function placeOf(configuration: Configuration, space: SearchSpace): SpacePlace {
  return dimensions
    .filter((name) => space[name].length > 1)
    .map((name) => {
      const values: readonly unknown[] = space[name]
      const at = values.indexOf(configuration[name])
      return scales.has(name) ? { at: at / (values.length - 1), isOnScale: true } : { at, isOnScale: false }
    })
}

/**
 * What whoever knows the runtime would try first, of each form on each provider: an instance for each core, and one on all cores. A form that
 * is bad with some setting is then not taken for bad altogether.
 *
 * @returns indices of the configurations that are nearest to that, each once.
 */
export function usualOnes(configurations: readonly Configuration[], cores: number): readonly number[] {
  const plainly = {
    spinning: false,
    graph: 'all',
    arena: true,
    parallel: false,
    maxBatch: 1,
    queueDelayUs: 0,
  } as const
  const ways = [
    { ...plainly, intraOpThreads: 1, instances: cores },
    { ...plainly, intraOpThreads: cores, instances: 1 },
  ]
  const kinds = new Map(
    configurations.map(({ form, provider }) => [`${form}|${provider}`, { form, provider }]),
  )
  const likeness = (configuration: Configuration, wanted: Partial<Configuration>) =>
    dimensions.filter((name) => configuration[name] === wanted[name]).length
  const nearest = [...kinds.values()].flatMap((kind) =>
    ways.map((way) => {
      const wanted: Configuration = { ...way, ...kind }
      const own = configurations.flatMap((each, index) =>
        each.form === kind.form && each.provider === kind.provider ? [index] : [],
      )
      return own.reduce((a, b) =>
        likeness(configurations[b]!, wanted) > likeness(configurations[a]!, wanted) ? b : a,
      )
    }),
  )
  return [...new Set(nearest)]
}
