import { loadPipeline } from '../config/load.js'
import { createLog } from '../lifecycle/log.js'
import type { PictureScorer } from '../tools/scoring/picture-scorer.js'
import type { CommandContext } from './command-context.js'
import { type ModelPlace, modelSource } from './model-source.js'
import { openScorer } from './open-scorer.js'
import type { GlobalOptions } from './options.js'
import type { ScorerFlags } from './scorer-flags.js'
import { withFetchedRepositories } from './stored-repositories.js'

/** What counts as a detection; absent: as the model is served. */
export type WantedLimits = Readonly<{ scoreThreshold: number; iouThreshold?: number; maxDetections?: number }>

export type OpenedScorers = Readonly<{
  scorers: readonly PictureScorer[]
  /** What the reader should know, a sentence each. */
  notes: readonly string[]
  /** Ends all of them. Never rejects. */
  stop(): Promise<void>
}>

const drainMs = 1_000

/**
 * Opens several models of one place, to be compared.
 *
 * @throws ConfigError; what opening one of them throws: those that were open are stopped
 */
export async function openScorers(
  models: readonly string[],
  flags: GlobalOptions & ModelPlace & ScorerFlags,
  { scoreThreshold, iouThreshold, maxDetections }: WantedLimits,
  context: CommandContext,
): Promise<OpenedScorers> {
  const { terminal, signals } = context
  const loaded = loadPipeline(flags.config, { env: terminal.env })
  const source = modelSource(await withFetchedRepositories(loaded, context), flags.repository)
  const log = createLog({ level: flags.debug === true ? 'info' : 'warn', format: 'auto' }, 'gantry')
  const limits = {
    scoreThreshold,
    ...(iouThreshold !== undefined && { iouThreshold }),
    ...(maxDetections !== undefined && { maxDetections }),
  }
  const scorers: PictureScorer[] = []
  const notes: string[] = []
  const note = (text: string) => void notes.push(text)
  const stop = async () => void (await Promise.all(scorers.map((scorer) => scorer.stop(drainMs))))
  try {
    for (const model of models) {
      signals.asked.throwIfAborted()
      scorers.push(await openScorer({ model, source, flags, limits, log, note }))
    }
    return { scorers, notes, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
