import { ProviderOptionsError } from '../backends/onnxruntime/native-options.js'
import { OrtModel } from '../backends/onnxruntime/ort-model.js'
import {
  noteText,
  ProviderUnavailableError,
  type ProviderNote,
} from '../backends/onnxruntime/provider-notes.js'
import { CardMemory } from '../backends/onnxruntime/card-memory.js'
import { missingProviderReason, oneShape } from '../backends/onnxruntime/providers.js'
import { nowMs } from '../lifecycle/clock.js'
import { ModelInvalidError } from '../repository/errors.js'
import type { DetectorCandidate, DetectorLoad } from './detector-protocol.js'
import { type HeadPlan, outputsOf } from './heads/head.js'

/** A model of the candidates on the provider that takes it. */
export type OpenedDetector = Readonly<{
  model: OrtModel
  candidate: number
  notes: readonly ProviderNote[]
  head: HeadPlan
  /** Where the provider is a GPU's: how many rows of the head it hands over for a frame, or why all of them. */
  headRows?: number | string
  openedMs: number
  /** Of the card, where what the model takes of it is to be known. */
  memory: CardMemory | undefined
}>

/** Opens a candidate. */
type Open = (
  candidate: DetectorCandidate,
  memory: CardMemory | undefined,
) => Promise<Pick<OpenedDetector, 'model' | 'head' | 'headRows'>>

/** The first candidate that opens. @throws ProviderUnavailableError if none does, ModelInvalidError */
export async function openFirst(
  { candidates, measuresMemory }: Pick<DetectorLoad, 'candidates' | 'measuresMemory'>,
  open: Open,
): Promise<OpenedDetector> {
  const beganMs = nowMs()
  const notes: ProviderNote[] = []
  for (const [index, candidate] of candidates.entries()) {
    const { deviceId, providers } = candidate.session
    const memory = measuresMemory && providers.some(oneShape) ? new CardMemory(deviceId) : undefined
    try {
      const opened = await open(candidate, memory)
      return {
        ...opened,
        memory,
        candidate: index,
        notes: eachOnce([...notes, ...opened.model.notes]),
        openedMs: nowMs() - beganMs,
      }
    } catch (error) {
      if (!(error instanceof ProviderUnavailableError)) throw error
      notes.push(...error.notes)
    }
  }
  throw new ProviderUnavailableError(eachOnce(notes))
}

/** Candidates fail on the same provider for the same reason. */
function eachOnce(notes: readonly ProviderNote[]): readonly ProviderNote[] {
  return [...new Map(notes.map((note) => [noteText(note), note])).values()]
}

export const openWhole: Open = async ({ session, head, batchSizes }, memory) => {
  const sizeIsKnown = head.kind !== 'end-to-end' && head.others === undefined
  const wanted = { names: outputsOf(head), sizeIsKnown }
  return { head, model: await OrtModel.open(session, wanted, batchSizes, memory) }
}

/** On a GPU, what it hands over is copied and read by one thread while it waits. */
export const openThinned: Open = async (candidate, memory) => {
  const { session } = candidate
  const provider = session.providers.find((each) => missingProviderReason(each) === undefined)
  if (provider === undefined || !oneShape(provider)) return openWhole(candidate, memory)
  // What writes graphs is a library that most threads never need.
  const { thinnedModel } = await import('./thinned-model.js')
  const thinned = thinnedModel(candidate)
  if (typeof thinned === 'string') return { ...(await openWhole(candidate, memory)), headRows: thinned }
  const { altered, head } = thinned
  try {
    const own = { ...candidate, head, session: { ...session, altered, providers: [provider] } }
    const opened = await openWhole(own, memory)
    return { ...opened, headRows: candidate.topRows }
  } catch (error) {
    // What was added may be what an option cannot be followed for.
    const isOfAddition =
      error instanceof ProviderUnavailableError ||
      error instanceof ProviderOptionsError ||
      error instanceof ModelInvalidError
    if (!isOfAddition) throw error
    return { ...(await openWhole(candidate, memory)), headRows: failureText(error) }
  }
}

export function failureText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
