import type { LoadedPipeline } from '../config/load.js'
import type { CommandContext } from './command-context.js'
import type { GlobalOptions } from './options.js'
import { untilStopped } from './until-stopped.js'

/** Runs the service and tells on stdout where it is. Resolves with the exit code. */
export async function runUntilStopped(
  loaded: LoadedPipeline,
  options: GlobalOptions,
  { terminal }: CommandContext,
): Promise<number> {
  const [{ runService }, { createLog }] = await Promise.all([
    import('../control/run-service.js'),
    import('../lifecycle/log.js'),
  ])
  const log = createLog(loaded.config.log, 'gantry')
  return untilStopped(
    () => runService(loaded, { log }),
    ({ httpUrl, metricsUrl }) => {
      if (options.json) terminal.out(JSON.stringify({ httpUrl, metricsUrl }))
      else if (!options.quiet)
        terminal.out(
          `${loaded.config.name} is running: ${httpUrl}/  (metrics: ${metricsUrl}; stop with Ctrl-C)`,
        )
    },
  )
}
