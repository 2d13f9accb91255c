import type { LoadedPipeline } from '../config/load.js'
import type { Log } from '../lifecycle/log.js'
import type { CommandContext } from './command-context.js'
import type { GlobalOptions } from './options.js'
import { untilStopped } from './until-stopped.js'

type RunServiceModule = Readonly<{
  runService(
    loaded: LoadedPipeline,
    options: Readonly<{ log: Log }>,
  ): Promise<Readonly<{ httpUrl: string; metricsUrl: string; stop(drainMs: number): Promise<void> }>>
}>

/** Runs the service and tells on stdout where it is. Resolves with the exit code. */
export async function runUntilStopped(
  loaded: LoadedPipeline,
  options: GlobalOptions,
  { terminal }: CommandContext,
): Promise<number> {
  const { runService } = (await import(
    new URL('../control/run-service.js', import.meta.url).href
  )) as RunServiceModule
  const { createLog } = await import('../lifecycle/log.js')
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
