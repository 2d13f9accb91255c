import { availableParallelism } from 'node:os'
import { executionProviders, type ExecutionProvider } from '../config/inference.js'
import type { GraphOptimization } from '../repository/model-config.js'
import { missingProviderReason, deviceOf } from '../backends/onnxruntime/providers.js'
import { shapeOption } from '../tools/perf/input-data.js'
import { type Precision, precisions } from '../tools/optimize/model-forms.js'
import { type TrialLimits, type Objective, type objectives } from '../tools/optimize/objective.js'
import type { AccuracyLimits } from '../tools/optimize/judge-forms.js'
import { configurationsOf, type SearchSpace } from '../tools/optimize/search-space.js'
import type { SetChoice } from '../tools/eval/read-set.js'
import type { Split } from '../tools/eval/yolo-set.js'
import type { ClassWish } from '../tools/eval/scored-classes.js'
import { parseStep } from '../tools/transform/transform-step.js'
import type { SizePx } from '../vision/letterbox.js'
import { classWish } from './eval-options.js'
import { UsageError } from './failure.js'
import type { ModelPlace } from './model-source.js'
import { listOf, numberBetween, wholeNumber } from './numbers.js'
import type { ServerLoginFlags } from './server-options.js'

/** Flags of `gantry optimize`, as they come. */
export type OptimizeFlags = ModelPlace &
  ServerLoginFlags &
  Readonly<{
    out?: string
    name?: string
    work?: string
    restart?: true
    objective: (typeof objectives)[number]
    weight: string
    maxP99?: string
    minThroughput?: string
    maxMemory?: string
    data?: string
    split: Split
    images?: string
    limit?: string
    classes?: string
    map?: readonly string[]
    minMap?: string
    maxDrop: string
    frames: readonly string[]
    pictures: string
    minAgreement: string
    forms?: string
    sizes?: string
    providers?: string
    threads?: string
    spinning: string
    graph: string
    arena: string
    execution: string
    instances?: string
    batches: string
    delays: string
    concurrency?: string
    trace?: string
    traceSeconds: string
    inputData: string
    shape?: readonly string[]
    trials?: string
    rounds: string
    brief?: true
    windowMs: string
    seed: string
    python?: string
    apply?: string
    applySeconds: string
    applyRatio: string
  }>

/** What the command line decides of a search; what needs models, pictures or a service is looked for later. */
export type OptimizeSettings = Readonly<{
  space: Omit<SearchSpace, 'form'>
  precisions: readonly Precision[]
  sizes: readonly SizePx[]
  objective: Objective
  limits: TrialLimits
  accuracy: AccuracyLimits
  set: SetChoice | undefined
  wish: ClassWish
  pictures: number
  concurrency: readonly number[] | undefined
  traceSeconds: number
  shapes: Readonly<Record<string, readonly number[]>>
  trials: number | undefined
  rounds: number
  explains: boolean
  seed: number
  windowMs: number
  applySeconds: number
  applyRatio: number
}>

const most = { threads: 1_024, instances: 256, batch: 4_096, delayMs: 60_000, atOnce: 65_536 } as const

/**
 * @param providers - those that the settings name.
 * @throws UsageError, OptimizeSettingError
 */
export function optimizeSettings(
  flags: OptimizeFlags,
  providers: readonly ExecutionProvider[],
): OptimizeSettings {
  const { data, split, images, limit, minMap, objective, maxP99, minThroughput, maxMemory } = flags
  if (data === undefined && (minMap !== undefined || flags.classes !== undefined))
    throw new UsageError('mAP is of a set with labels', 'Name one with --data.')
  const used = providersIn(flags.providers, providers)
  const onGpu = used.some((provider) => deviceOf(provider) === 'gpu')
  const space = spaceOf(flags, used)
  if (configurationsOf({ form: [''], ...space }, availableParallelism()).length === 0)
    throw new UsageError(
      'no configuration is left to be tried: each has more threads than twice the cores',
      'Name smaller values with --threads and --instances.',
    )
  return {
    space,
    precisions: wordsIn(flags.forms ?? (onGpu ? 'float32,float16' : 'float32,int8'), '--forms', precisions),
    sizes: flags.sizes === undefined ? [] : listOf(flags.sizes, '--sizes').map(sizeIn),
    objective:
      objective === 'weighted'
        ? { kind: objective, weight: numberBetween(flags.weight, '--weight', 0, 1) }
        : { kind: objective },
    limits: {
      ...(maxP99 !== undefined && { p99Ms: numberBetween(maxP99, '--max-p99', 0.001, 1e7) }),
      ...(minThroughput !== undefined && {
        perSecond: numberBetween(minThroughput, '--min-throughput', 0.001, 1e7),
      }),
      ...(maxMemory !== undefined && {
        memoryBytes: wholeNumber(maxMemory, '--max-memory', 1, 1e7) * 1024 ** 2,
      }),
    },
    accuracy:
      data === undefined
        ? { agreement: numberBetween(flags.minAgreement, '--min-agreement', 0, 1) }
        : {
            mapDrop: numberBetween(flags.maxDrop, '--max-drop', 0, 1),
            ...(minMap !== undefined && { map: numberBetween(minMap, '--min-map', 0, 1) }),
          },
    set:
      data === undefined
        ? undefined
        : {
            data,
            split,
            ...(images !== undefined && { images }),
            ...(limit !== undefined && { limit: wholeNumber(limit, '--limit', 1, 1e9) }),
          },
    wish: classWish(flags),
    pictures: wholeNumber(flags.pictures, '--pictures', 1, 10_000),
    concurrency:
      flags.concurrency === undefined
        ? undefined
        : numbersIn(flags.concurrency, '--concurrency', 1, most.atOnce),
    traceSeconds: numberBetween(flags.traceSeconds, '--trace-seconds', 1, 86_400),
    shapes: Object.fromEntries((flags.shape ?? []).map(shapeOption)),
    trials: flags.trials === undefined ? undefined : wholeNumber(flags.trials, '--trials', 1, 1e6),
    rounds: wholeNumber(flags.rounds, '--rounds', 1, 1_000),
    explains: flags.brief !== true,
    seed: wholeNumber(flags.seed, '--seed', 0, 2 ** 32 - 1),
    windowMs: wholeNumber(flags.windowMs, '--window-ms', 50, 60_000),
    applySeconds: wholeNumber(flags.applySeconds, '--apply-seconds', 5, 3_600),
    applyRatio: numberBetween(flags.applyRatio, '--apply-ratio', 1, 100),
  }
}

function spaceOf(flags: OptimizeFlags, provider: readonly ExecutionProvider[]): OptimizeSettings['space'] {
  const cores = availableParallelism()
  const threads = flags.threads ?? powersUpTo(cores)
  const instances = flags.instances ?? powersUpTo(2 * cores)
  return {
    provider,
    intraOpThreads: numbersIn(threads, '--threads', 1, most.threads),
    spinning: switchesIn(flags.spinning, '--spinning'),
    graph: wordsIn<GraphOptimization>(flags.graph, '--graph', ['disabled', 'basic', 'extended', 'all']),
    arena: switchesIn(flags.arena, '--arena'),
    parallel: wordsIn(flags.execution, '--execution', ['sequential', 'parallel']).map(
      (word) => word === 'parallel',
    ),
    instances: numbersIn(instances, '--instances', 1, most.instances),
    maxBatch: numbersIn(flags.batches, '--batches', 1, most.batch),
    queueDelayUs: listOf(flags.delays, '--delays')
      .map((text) => Math.round(numberBetween(text, '--delays', 0, most.delayMs) * 1e3))
      .sort((a, b) => a - b),
  }
}

function powersUpTo(most: number): string {
  const powers = [1]
  while (2 * powers.at(-1)! <= most) powers.push(2 * powers.at(-1)!)
  return powers.join(',')
}

/** @throws UsageError for one that is not here */
function providersIn(
  text: string | undefined,
  known: readonly ExecutionProvider[],
): readonly ExecutionProvider[] {
  if (text === undefined) {
    const here = known.filter((provider) => missingProviderReason(provider) === undefined)
    return here.length > 0 ? here : ['cpu']
  }
  const named = wordsIn(text, '--providers', executionProviders)
  for (const provider of named) {
    const reason = missingProviderReason(provider)
    if (reason !== undefined)
      throw new UsageError(
        `--providers ${provider}: ${reason}`,
        '`gantry doctor` tells what this machine has.',
      )
  }
  return named
}

function numbersIn(text: string, flag: string, min: number, max: number): readonly number[] {
  return listOf(text, flag)
    .map((word) => wholeNumber(word, flag, min, max))
    .sort((a, b) => a - b)
}

function switchesIn(text: string, flag: string): readonly boolean[] {
  return wordsIn(text, flag, ['on', 'off']).map((word) => word === 'on')
}

function wordsIn<Word extends string>(text: string, flag: string, known: readonly Word[]): readonly Word[] {
  return listOf(text, flag).map((word) => {
    const found = known.find((each) => each === word)
    if (found === undefined) throw new UsageError(`${flag} is "${word}"`, `Use ${known.join(', ')}.`)
    return found
  })
}

function sizeIn(text: string): SizePx {
  const step = /^\d/.test(text) ? parseStep(`size=${text}`) : undefined
  if (step?.kind === 'size' && step.size !== 'free') return step.size
  throw new UsageError(`--sizes is "${text}"`, 'Write WIDTHxHEIGHT, such as 640x384.')
}
