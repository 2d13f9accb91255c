import { availableParallelism } from 'node:os'
import type { DetectionLimits } from '../detector/frame-reader.js'
import { GantryError } from '../errors.js'
import type { Log } from '../lifecycle/log.js'
import { EngineSteps } from '../processes/engine/step-models.js'
import { ModelLabelsError } from '../repository/errors.js'
import { readLabelsFile } from '../repository/labels.js'
import { emptyModelConfig, type ModelConfig } from '../repository/model-config.js'
import { readModel } from '../repository/model-definition.js'
import { checkRepositories } from '../repository/repository-folder.js'
import { openClient } from '../tools/client/open-client.js'
import { inspectModel } from '../tools/model-catalog.js'
import type { PictureScorer } from '../tools/scoring/picture-scorer.js'
import { openRepositoryScorer } from '../tools/scoring/repository-scorer.js'
import { openServerScorer } from '../tools/scoring/server-scorer.js'
import { UsageError } from './failure.js'
import type { ModelSource } from './model-source.js'
import type { ScorerFlags } from './scorer-flags.js'
import { serverLogin } from './server-options.js'

export type ScorerOptions = Readonly<{
  /** An ensemble for cameras or a detector; of a server what {@link openServerScorer} takes. */
  model: string
  /** With a server: where the names of classes are looked for. */
  source: ModelSource
  flags: ScorerFlags
  /** What counts as a detection, before what the model and `source` say. */
  limits?: Partial<DetectionLimits>
  log: Log
  /** Takes what the reader should know, a sentence each. */
  note(text: string): void
}>

/** Requests at once: two for each instance that a server on a machine like this one has, so that one waits while one runs. */
const requestsAtOnce = 2 * availableParallelism()

/**
 * Opens a model of the repositories, or of a running server where its address is given.
 *
 * @throws UsageError for labels that cannot be read; what {@link openRepositoryScorer}, {@link openServerScorer} and {@link openClient} throw
 */
export function openScorer(options: ScorerOptions): Promise<PictureScorer> {
  return options.flags.url === undefined ? ofRepository(options) : ofServer(options)
}

async function ofRepository({ model, source, limits, log }: ScorerOptions): Promise<PictureScorer> {
  const { repositories, inference } = source
  await checkRepositories(repositories)
  const failed = (reason: string) => log.error({ reason }, 'a step of the model failed')
  const steps = new EngineSteps({ ...source, onDeviceFailed: failed, onHung: failed, log })
  return openRepositoryScorer({ repositories, model, inference, ...(limits && { limits }), steps, log })
}

async function ofServer({
  model: name,
  source,
  flags,
  limits,
  log,
  note,
}: ScorerOptions): Promise<PictureScorer> {
  const { url, labels, head } = flags
  const known = labels === undefined ? knownModel(source.repositories, name) : labelled(labels)
  if (known?.from !== undefined) note(`${name}: names of the classes are those of ${known.from}`)
  const { config = emptyModelConfig } = known ?? {}
  return openServerScorer({
    client: await openClient(url, serverLogin(flags)),
    model: { name },
    labels: known?.labels ?? [],
    config: head === undefined ? config : withHead(config, head),
    limits: { ...source.inference, ...limits },
    atOnce: requestsAtOnce,
    warn: (text) => log.error({ model: name }, text),
  })
}

/** What is known of a server's model besides what it tells. */
type KnownModel = Readonly<{
  labels: readonly string[]
  config?: ModelConfig
  /** Folder of the model that is taken for it. */
  from?: string
}>

/** @throws UsageError */
function labelled(file: string): KnownModel {
  try {
    return { labels: readLabelsFile(file) }
  } catch (error) {
    if (!(error instanceof ModelLabelsError)) throw error
    throw new UsageError(
      `--labels: ${error.message}`,
      'Name a text file with the names of the classes, one on each line, in their order.',
    )
  }
}

/** The model of that name in the repositories, as far as it can be read. */
function knownModel(repositories: readonly string[], name: string): KnownModel | undefined {
  try {
    const { detector, dir } = inspectModel(repositories, name)
    return detector === undefined
      ? undefined
      : { labels: detector.labels, config: readModel(repositories, name).config, from: dir }
  } catch (error) {
    if (error instanceof GantryError) return undefined
    throw error
  }
}

function withHead(config: ModelConfig, head: string): ModelConfig {
  return { ...config, parameters: { ...config.parameters, 'gantry.head': { string_value: head } } }
}
