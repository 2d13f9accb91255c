import { delay } from '../../lifecycle/delay.js'
import type { EnsembleState, EnsembleTrial, GantryApi } from '../client/gantry-api.js'
import { OptimizeSettingError } from './optimize-errors.js'

/** What became of a result in a running service. */
export type Applied = NonNullable<EnsembleState['last']> & Readonly<{ before: string; configured: string }>

const lookEveryMs = 500

/**
 * Lets the cameras of a running service take another ensemble, on trial: the service takes it back if its p99 or its agreement gets worse.
 *
 * @param name - of an ensemble or a detector in a repository of that service.
 * @param signal - ends the waiting; the service goes on with the trial and judges it by itself.
 * @throws ServerUnreachableError, ServerRefusalError, ServerTokenError; OptimizeSettingError where the service runs it already; AbortError
 */
export async function applyResult(
  api: GantryApi,
  name: string,
  trial: EnsembleTrial,
  signal: AbortSignal,
  progress: (text: string) => void,
): Promise<Applied> {
  const { name: before } = await api.ensemble()
  if (before === name)
    throw new OptimizeSettingError(
      `the cameras of ${api.target.url} run "${name}" already`,
      'Choose another --name for the result.',
    )
  let state = await api.useEnsemble(name, trial)
  while (state.state !== 'steady') {
    progress(`${api.target.url}: "${name}" ${words[state.state]}`)
    await delay(lookEveryMs, signal)
    signal.throwIfAborted()
    state = await api.ensemble()
  }
  const { last, configured } = state
  if (last?.name !== name)
    throw new OptimizeSettingError(
      `${api.target.url} tells nothing of "${name}"`,
      'Another change may have come between: look at GET /api/v1/ensemble.',
    )
  return { ...last, before, configured }
}

const words = {
  loading: 'is being loaded beside what runs',
  comparing: 'is compared with what runs',
  trial: 'is on trial with the cameras',
} as const
