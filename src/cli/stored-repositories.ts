import type { LoadedPipeline } from '../config/load.js'
import type { CommandContext } from './command-context.js'

/**
 * For commands that read models: settings with a folder in place of each repository in an object store. What is new there is fetched; a
 * running service does not notice. One that is away is read as it was fetched before.
 *
 * @param tell - takes why what is read is not what the store has, a sentence each.
 * @param network - `false`: only what was fetched before.
 * @throws ObjectStoreError, SystemLimitError where there is nothing to read
 */
export async function withFetchedRepositories(
  loaded: LoadedPipeline,
  { terminal, signals }: Pick<CommandContext, 'terminal' | 'signals'>,
  tell: (reason: string) => void = (reason) => terminal.err(`note: ${reason}`),
  network = true,
): Promise<LoadedPipeline> {
  const [{ hasStoredRepository, mirrorsOf }, { silentLog }] = await Promise.all([
    import('../buckets/mirror/mirrors-of.js'),
    import('../lifecycle/log.js'),
  ])
  if (!hasStoredRepository(loaded.config)) return loaded
  const { config, mirrors } = mirrorsOf(loaded.config, {
    reader: 'command',
    env: terminal.env,
    log: silentLog(),
    signal: signals.asked,
  })
  await (network ? mirrors.begin() : mirrors.useFetched())
  for (const reason of mirrors.reasons) tell(reason)
  return { ...loaded, config }
}
