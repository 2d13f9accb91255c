import type { ExecutionProvider } from '../../config/inference.js'
import { GantryError } from '../../errors.js'
import type { Log } from '../../lifecycle/log.js'

/** Why a provider does not run a model. */
export type ProviderNote = Readonly<{
  provider: ExecutionProvider
  reason: string
  /** It is there, so that it should run: a fault, and not a machine without a GPU. */
  installed: boolean
}>

export function noteText({ provider, reason }: ProviderNote): string {
  return `${provider}: ${reason}`
}

/** Those that are faults. */
export function failuresOf(notes: readonly ProviderNote[]): readonly string[] {
  return notes.filter(({ installed }) => installed).map(noteText)
}

/** Tells why a model does not run on a provider: a warning where that is a fault. */
export function logNotes(
  log: Log,
  model: string,
  { provider, notes }: Readonly<{ provider: ExecutionProvider; notes: readonly ProviderNote[] }>,
): void {
  for (const note of notes) {
    const fields = { model, note: noteText(note) }
    if (note.installed)
      log.warn({ ...fields, provider }, 'execution provider fails, another one runs the model')
    else log.info(fields, 'execution provider is not used')
  }
}

/** None of the configured execution providers can run the model. */
export class ProviderUnavailableError extends GantryError {
  readonly code = 'GANTRY_PROVIDER_UNAVAILABLE'
  readonly hint = 'Add "cpu" to inference.providers, or see `gantry doctor` for what this machine has.'
  constructor(readonly notes: readonly ProviderNote[]) {
    super(`no execution provider can run the model: ${notes.map(noteText).join('; ')}`)
    this.name = 'ProviderUnavailableError'
  }
}
