import { Option, type Command } from 'commander'
import type { FlagSetting } from '../config/environment.js'
import { standardInput } from '../config/standard-input.js'
import { UsageError } from './failure.js'

/** Options of `gantry` itself, understood before and after the command's name. */
export type GlobalOptions = Readonly<{ json?: true; quiet?: true; debug?: true }>

/** Options of the commands that use a pipeline file. */
export type PipelineOptions = Readonly<{
  config?: string
  host?: string
  httpPort?: string
  grpcPort?: string
  metricsPort?: string
  logLevel?: string
  set?: readonly string[]
}>

const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value]

export function configOption(description = 'pipeline file (YAML)'): Option {
  return new Option('-c, --config <file>', `${description}; -: standard input`).env('GANTRY_CONFIG')
}

/** Whether the command is to read a pipeline from standard input. */
export function readsStandardInput(command: Command): boolean {
  const option = command.options.find(({ short }) => short === '-c')
  return option !== undefined && command.opts<PipelineOptions>().config === standardInput
}

export function setOption(): Option {
  return new Option(
    '--set <key=value>',
    'any setting, such as cameras[0].sampleFps=2; may be repeated',
  ).argParser(collect)
}

/** Flags for the settings people change most; `--set` reaches all of them. */
export function addSettingFlags(command: Command): Command {
  return command
    .option('--host <address>', 'address to listen on (server.host)')
    .option('--http-port <port>', 'port of the API and the page (server.httpPort)')
    .option('--grpc-port <port>', 'port of the model server for gRPC (server.grpcPort)')
    .option('--metrics-port <port>', 'second port with /metrics only (server.metricsPort)')
    .option('--log-level <level>', 'debug, info, warn or error (log.level)')
    .addOption(setOption())
}

/** The flags as settings, `--set` last: it is the most exact. */
export function flagSettings(options: PipelineOptions & GlobalOptions): FlagSetting[] {
  const named: [flag: string, path: string, text: string | undefined][] = [
    ['--host', 'server.host', options.host],
    ['--http-port', 'server.httpPort', options.httpPort],
    ['--grpc-port', 'server.grpcPort', options.grpcPort],
    ['--metrics-port', 'server.metricsPort', options.metricsPort],
    ['--log-level', 'log.level', options.logLevel ?? (options.quiet && 'warn')],
  ]
  return [
    ...named.flatMap(([flag, path, text]) => (text === undefined ? [] : [{ flag, path, text }])),
    ...(options.set ?? []).map(assignment),
  ]
}

/**
 * Asks for options that the command cannot do without once the rest of the line is understood. Commander asks for them first, so that who
 * writes `--dta` is told that `--data` is missing, and not what was mistyped.
 */
export function requireLast(command: Command): void {
  for (const inner of command.commands) requireLast(inner)
  const required = command.options.filter(({ mandatory }) => mandatory)
  if (required.length === 0) return
  for (const option of required) option.makeOptionMandatory(false)
  command.hook('preAction', () => {
    const missing = required.find((option) => command.getOptionValue(option.attributeName()) === undefined)
    if (missing !== undefined)
      throw new UsageError(
        `required option '${missing.flags}' not specified`,
        `${missing.long ?? missing.flags} is: ${missing.description}.`,
      )
  })
}

function assignment(text: string): FlagSetting {
  const [, path, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (path === undefined || value === undefined)
    throw new UsageError(`--set ${text}: no "=" in it`, 'Write --set key=value, such as --set engines=2.')
  return { flag: `--set ${path}`, path: path.trim(), text: value }
}
