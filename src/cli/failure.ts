import type { CommanderError } from 'commander'
import { redactText } from '../config/redact.js'
import { type ErrorCode, GantryError, toErrorRecord } from '../errors.js'
import type { WarningLog } from '../lifecycle/node-warnings.js'
import { styled, type Terminal } from './terminal.js'

/** 0 ok, 1 it went wrong while running, 2 what was asked for cannot be: command line, settings or model. */
export const exitCodes = { ok: 0, runtime: 1, usage: 2, interrupted: 130, terminated: 143 } as const

/** Errors that the same command would meet again until somebody changes a setting, a model or the command itself. */
const askedWrongly: ReadonlySet<ErrorCode> = new Set([
  'GANTRY_CONFIG',
  'GANTRY_USAGE',
  'GANTRY_PUBLIC_BIND',
  'GANTRY_CAMERA_URL',
  'GANTRY_CAMERA_SETTING',
  'GANTRY_CAMERA_EXISTS',
  'GANTRY_LABELS',
  'GANTRY_MODEL_NOT_FOUND',
  'GANTRY_MODEL_CONFIG',
  'GANTRY_MODEL_INVALID',
  'GANTRY_MODEL_LABELS',
  'GANTRY_MODEL_TRANSFORM',
  'GANTRY_HEAD_UNKNOWN',
  'GANTRY_TENSOR_SHAPE',
  'GANTRY_BATCH_INPUT',
  'GANTRY_BATCH_STATE',
  'GANTRY_OPTIMIZE_STATE',
])

export function exitCodeOf(error: unknown): number {
  return askedWrongly.has(toErrorRecord(error).code) ? exitCodes.usage : exitCodes.runtime
}

/**
 * Commander's own words as an error of ours; undefined for what is none, such as `--help`.
 *
 * @param command - whose help tells more, such as `gantry models`.
 */
export function usageErrorOf(error: CommanderError, command: string): UsageError | undefined {
  if (error.exitCode === 0) return undefined
  if (error.code === 'commander.help')
    return new UsageError('no command was given', 'Name one of the commands above.')
  const [message = '', ...rest] = error.message.replace(/^error: /, '').split('\n')
  const suggestion = /\(Did you mean (.*)\?\)/.exec(rest.join(' '))?.[1]
  if (suggestion) return new UsageError(message, `Did you mean ${suggestion}?`)
  return new UsageError(
    message,
    otherPlaceOf(error, command) ?? `\`${command} --help\` lists commands and options.`,
  )
}

/** How the command names what another command names by an option, or without one. */
function otherPlaceOf({ code, message }: CommanderError, command: string): string | undefined {
  if (code === 'commander.excessArguments') {
    if (/^gantry (serve|check|doctor)$/.test(command)) return 'A pipeline file is named with -c FILE.'
    if (command === 'gantry perf') return 'A model is named with -m MODEL, a server with -u URL.'
  }
  if (code === 'commander.unknownOption' && /'(-m|--model)'/.test(message)) {
    if (/^gantry (eval|optimize|models \w+)$/.test(command))
      return `A model is named without an option: \`${command} MODEL\`.`
  }
  return undefined
}

/** One message and one hint on stderr; as a JSON line for programs, with the stack for those who look for a fault. */
export function reportFailure(error: unknown, terminal: Terminal, { json = false, debug = false }): void {
  const { code, message, hint } = toErrorRecord(error)
  const shown = redactText(message)
  if (json) terminal.err(JSON.stringify({ error: { code, message: shown, hint: redactText(hint) } }))
  else {
    const color = terminal.color.err
    const separator = shown.includes('\n') ? ':\n' : ': '
    terminal.err(`${styled('error', 'red', color)} ${code}${separator}${shown}`)
    terminal.err(`${styled('hint', 'cyan', color)}: ${redactText(hint)}`)
  }
  if (debug && error instanceof Error && error.stack) terminal.err(redactText(error.stack))
}

/** Warnings of Node on stderr, each one line: of JSON for programs. */
export function warningsOn(terminal: Terminal, json: boolean): WarningLog {
  return {
    warn({ warning: { name, code, message } }) {
      const shown = redactText(message)
      if (json) terminal.err(JSON.stringify({ warning: { name, code, message: shown } }))
      else terminal.err(`${styled('warning', 'yellow', terminal.color.err)} ${code ?? name}: ${shown}`)
    },
  }
}

/** The command line is not understood. */
export class UsageError extends GantryError {
  readonly code = 'GANTRY_USAGE'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'UsageError'
  }
}
