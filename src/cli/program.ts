import { Command, CommanderError } from 'commander'
import { batchCommand } from './commands/batch.js'
import { checkCommand } from './commands/check.js'
import { completionCommand } from './commands/completion.js'
import { demoCommand } from './commands/demo.js'
import { doctorCommand } from './commands/doctor.js'
import { evalCommand } from './commands/eval.js'
import { gpuCommand } from './commands/gpu.js'
import { healthCommand } from './commands/health.js'
import { modelsCommand } from './commands/models.js'
import { optimizeCommand } from './commands/optimize.js'
import { perfCommand } from './commands/perf.js'
import { serveCommand } from './commands/serve.js'
import { tokenCommand } from './commands/token.js'
import type { CommandContext } from './command-context.js'
import { exitCodeOf, exitCodes, reportFailure, UsageError, usageErrorOf, warningsOn } from './failure.js'
import { readStandardInput } from '../config/standard-input.js'
import { unlessAborted } from '../lifecycle/delay.js'
import { nodeWarnings } from '../lifecycle/node-warnings.js'
import { readsStandardInput, requireLast, type GlobalOptions } from './options.js'
import { StopSignals } from './stop-signals.js'
import type { Terminal } from './terminal.js'
import { packageVersion } from '../lifecycle/installation.js'

const exitCodesHelp = `
Exit codes: 0 ok (also after SIGTERM), 1 it went wrong while running, 2 command line, settings or model are wrong,
130 after Ctrl-C, 143 after a second SIGTERM.
Settings: flags, then GANTRY__SECTION__KEY in the environment, then the pipeline file, then defaults.`

/** Commands that end in good order; a signal ends any other at once. */
const runUntilStopped: ReadonlySet<string> = new Set([
  'serve',
  'demo',
  'perf',
  'optimize',
  'eval',
  'batch',
  'transform',
])

function buildProgram(context: CommandContext, json: boolean): Command {
  const program = new Command('gantry')
    .description('Real-time video analytics for factory cameras.')
    .version(packageVersion(), '-V, --version')
    .option('--json', 'print data as JSON, errors as a JSON line')
    .option('-q, --quiet', 'print only what was asked for, log warnings only')
    .option('--debug', 'print the stack of an error')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({
      writeOut: (text) => context.terminal.out(text.trimEnd()),
      // Its errors are reported by us, in one form with all others; what is left is the help of a bare `gantry` or `gantry models`.
      outputError: () => undefined,
      writeErr: (text) => !json && context.terminal.err(text.trimEnd()),
      getOutHasColors: () => context.terminal.color.out,
    })
    .showSuggestionAfterError()
    .exitOverride()
    .addHelpText('after', exitCodesHelp)
    .hook('preAction', async (_, command) => {
      if (!runUntilStopped.has(command.name())) {
        context.signals.release()
        nodeWarnings.tell(warningsOn(context.terminal, json))
      }
      if (!readsStandardInput(command)) return
      if (command.args.includes('-'))
        throw new UsageError(
          '-c - and the input - would both read standard input',
          'Name the pipeline, or the list of pictures, by a file.',
        )
      await unlessAborted(
        readStandardInput(() => process.stdin),
        context.signals.asked,
      )
    })
  for (const create of [
    serveCommand,
    demoCommand,
    checkCommand,
    doctorCommand,
    healthCommand,
    gpuCommand,
    modelsCommand,
    perfCommand,
    optimizeCommand,
    evalCommand,
    batchCommand,
    completionCommand,
    tokenCommand,
  ]) {
    const command = create(context)
    inheritSettings(command, program)
    requireLast(command)
    program.addCommand(command)
  }
  return program
}

/** Commands made elsewhere know nothing of the settings of their parent. */
function inheritSettings(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent)
  for (const inner of command.commands) inheritSettings(inner, command)
}

/**
 * Runs one command line to its end.
 *
 * @param args - without `node` and the script.
 * @param signals - heard by what runs until it is stopped.
 * @returns the exit code; nothing is thrown.
 */
export async function run(
  args: readonly string[],
  terminal: Terminal,
  signals = new StopSignals(),
): Promise<number> {
  let code: number = exitCodes.ok
  // After a usage error commander has no options to tell; the arguments themselves always do.
  const has = (flag: string) => args.includes(flag)
  const program = buildProgram({ terminal, signals, exit: (given) => (code = given) }, has('--json'))
  try {
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    // It was waited for a pipeline from standard input.
    if (signals.asked.aborted && error === signals.asked.reason)
      return signals.first === 'SIGINT' ? exitCodes.interrupted : exitCodes.ok
    const failure = error instanceof CommanderError ? usageErrorOf(error, commandNamed(program, args)) : error
    if (failure === undefined) return exitCodes.ok
    const options: GlobalOptions = program.opts()
    reportFailure(failure, terminal, {
      json: options.json ?? has('--json'),
      debug: options.debug ?? has('--debug'),
    })
    return exitCodeOf(failure)
  } finally {
    signals.forget()
  }
}

/** `gantry models inspect` of the words of a command line, as far as they name commands. */
function commandNamed(program: Command, args: readonly string[]): string {
  const names = [program.name()]
  let command: Command | undefined = program
  for (const word of args.filter((arg) => !arg.startsWith('-'))) {
    command = command.commands.find((inner) => inner.name() === word)
    if (command === undefined) break
    names.push(word)
  }
  return names.join(' ')
}
