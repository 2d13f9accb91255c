import { Command } from 'commander'
import { loadPipeline, type LoadedPipeline } from '../../config/load.js'
import { printConfig, printConfigJson } from '../../config/print.js'
import {
  addSettingFlags,
  configOption,
  flagSettings,
  type GlobalOptions,
  type PipelineOptions,
} from '../options.js'
import type { CommandContext } from '../command-context.js'
import { runUntilStopped } from '../run-until-stopped.js'
import { UsageError } from '../failure.js'

type ServeOptions = PipelineOptions & GlobalOptions & Readonly<{ printConfig?: true }>

export function serveCommand(context: CommandContext): Command {
  const command = new Command('serve')
    .description('run a pipeline file until it is told to stop')
    .addOption(configOption())
    .option('--print-config', 'print the settings in force, secrets masked, and end')
  return addSettingFlags(command).action(async (_, self: Command) => {
    const options = self.optsWithGlobals<ServeOptions>()
    const loaded = loadNamed(options, context, options.printConfig === undefined)
    const print = options.json ? printConfigJson : printConfig
    if (options.printConfig) context.terminal.out(print(loaded.config).trimEnd())
    else context.exit(await runUntilStopped(() => loaded, options, context))
  })
}

/** @throws UsageError when no pipeline file is named. */
export function loadNamed(
  options: PipelineOptions & GlobalOptions,
  { terminal }: CommandContext,
  toServe = true,
): LoadedPipeline {
  if (options.config === undefined)
    throw new UsageError(
      'no pipeline file was named',
      'Name one with -c FILE or GANTRY_CONFIG; `gantry demo` needs none.',
    )
  return loadPipeline(options.config, { flags: flagSettings(options), env: terminal.env, toServe })
}
