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

export function noteText({ provider, reason }: Pick<ProviderNote, 'provider' | 'reason'>): string {
  return `${provider}: ${reason}`
}

/** Those that are faults. */
export function failuresOf(notes: readonly ProviderNote[]): readonly string[] {
  return notes.filter(({ installed }) => installed).map(noteText)
}

/** Tells that there is no room for a session of each size of batch. */
export function warnOfSizes(log: Log, model: string, reason: string): void {
  log.warn(
    { model, reason },
    'there is no room for a session of each batch size: those left out are filled up to a larger one',
  )
}

/** None of the configured execution providers can run the model. Where one is installed and fails, it may do so later. */
export class ProviderUnavailableError extends GantryError {
  readonly code: 'GANTRY_PROVIDER_UNAVAILABLE' | 'GANTRY_PROVIDER_FAILS'
  readonly hint: string
  override readonly retryable: boolean
  constructor(readonly notes: readonly ProviderNote[]) {
    super(`${noProvider}${notes.map(noteText).join('; ')}`)
    this.name = 'ProviderUnavailableError'
    this.retryable = failuresOf(notes).length > 0
    this.code = this.retryable ? 'GANTRY_PROVIDER_FAILS' : 'GANTRY_PROVIDER_UNAVAILABLE'
    this.hint = this.retryable
      ? 'It is tried again by itself. Add "cpu" to inference.providers to have models run meanwhile; `gantry doctor` looks at the provider.'
      : 'Add "cpu" to inference.providers, or see `gantry doctor` for what this machine has.'
  }
}

const noProvider = 'no execution provider can run the model: '

/** Why installed providers fail, by the error of a thread that found none to run its model; undefined for any other error. */
export function failureIn(error: unknown): string | undefined {
  if (!(error instanceof GantryError) || error.code !== 'GANTRY_PROVIDER_FAILS') return undefined
  return error.message.replace(noProvider, '')
}
