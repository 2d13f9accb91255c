import type { LoadedPipeline } from '../config/load.js'
import type { Log } from '../lifecycle/log.js'
import { modelPrint } from '../tools/batch/model-print.js'
import type { OpenedScorer } from '../tools/batch/run-batch.js'
import { type ModelPlace, modelSource } from './model-source.js'
import { openScorer } from './open-scorer.js'
import type { ScorerFlags } from './scorer-flags.js'

/** What a command line says of the model that scores a batch. */
export type BatchModelFlags = ModelPlace & ScorerFlags & Readonly<{ model?: string }>

/** A server tells no more of a model than its name and version. */
const printOfServer = 'of a server'

/**
 * The scorer of a batch, by default of the model that cameras run on, with what the run remembers of it.
 *
 * @param note - takes what the reader should know, a sentence each.
 * @throws what {@link openScorer} and {@link modelPrint} throw
 */
export async function openBatchScorer(
  flags: BatchModelFlags,
  loaded: LoadedPipeline,
  log: Log,
  note: (text: string) => void,
): Promise<OpenedScorer> {
  const source = modelSource(loaded, flags.repository)
  const model = flags.model ?? loaded.config.ensemble
  const print = flags.url === undefined ? await modelPrint(source.repositories, model) : printOfServer
  const scorer = await openScorer({ model, source, flags, log, note })
  const [name = '', version = '1'] = scorer.info.name.split(':')
  return { scorer, model: { name, version }, inputPx: scorer.info.inputPx, print }
}
