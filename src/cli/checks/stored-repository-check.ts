import { type LoadedPipeline, repositoriesOf } from '../../config/load.js'
import { isS3Url } from '../../config/s3-url.js'
import { toErrorRecord } from '../../errors.js'
import type { CommandContext } from '../command-context.js'
import type { Finding } from '../findings.js'
import { withFetchedRepositories } from '../stored-repositories.js'

/** What was found of repositories in object stores; the settings to look at models by, where they can be looked at. */
export type FetchedRepositories = Readonly<{ loaded: LoadedPipeline | undefined; findings: Finding[] }>

/**
 * Fetches the repositories that lie in object stores, as far as that can be.
 *
 * @param network - `false`: looks at what was fetched before.
 */
export async function fetchRepositories(
  loaded: LoadedPipeline,
  context: CommandContext,
  network: boolean,
): Promise<FetchedRepositories> {
  const urls = repositoriesOf(loaded.config).filter(isS3Url)
  if (urls.length === 0) return { loaded, findings: [] }
  const subject = urls.map((url) => `repository ${url}`).join(', ')
  try {
    const reasons: string[] = []
    const fetched = await withFetchedRepositories(loaded, context, (reason) => reasons.push(reason), network)
    if (!network)
      return {
        loaded: fetched,
        findings: [{ subject, state: 'skipped', detail: 'as it was fetched before' }],
      }
    if (reasons.length === 0)
      return { loaded: fetched, findings: [{ subject, state: 'ok', detail: 'fetched' }] }
    const fix = 'see that the store runs and may be read; what was fetched is served until then'
    return {
      loaded: fetched,
      findings: reasons.map((each) => ({ subject, state: 'warning', detail: each, fix })),
    }
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    const state = network ? 'failed' : 'skipped'
    return { loaded: undefined, findings: [{ subject, state, detail: message, fix: hint }] }
  }
}
