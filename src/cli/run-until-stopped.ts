import type { LoadedPipeline } from '../config/load.js'
import { nodeWarnings } from '../lifecycle/node-warnings.js'
import type { CommandContext } from './command-context.js'
import type { GlobalOptions } from './options.js'
import { untilStopped } from './until-stopped.js'

/**
 * Runs the service and tells on stdout where it is. Resolves with the exit code.
 *
 * @param prepare - what the service needs before it starts; a signal ends it.
 */
export async function runUntilStopped(
  prepare: (signal: AbortSignal) => Promise<LoadedPipeline> | LoadedPipeline,
  options: GlobalOptions,
  { terminal, signals }: CommandContext,
): Promise<number> {
  return untilStopped(
    async (signal) => {
      const [loaded, { runService }, { createLog }] = await Promise.all([
        prepare(signal),
        import('../processes/control/run-service.js'),
        import('../lifecycle/log.js'),
      ])
      const log = createLog(loaded.config.log, 'gantry')
      nodeWarnings.tell(log)
      return runService(loaded, { env: terminal.env, log, signal })
    },
    ({ gantry: { name }, httpUrl, metricsUrl, readCertificatesAgain }) => {
      // At a terminal it says that the terminal is gone.
      if (readCertificatesAgain !== undefined && !process.stdin.isTTY && !process.stderr.isTTY)
        signals.insteadOfHangup(() => void readCertificatesAgain())
      if (options.json) terminal.out(JSON.stringify({ httpUrl, metricsUrl }))
      else if (!options.quiet)
        terminal.out(`${name} is running: ${httpUrl}/  (metrics: ${metricsUrl}; stop with Ctrl-C)`)
    },
    signals,
  )
}
