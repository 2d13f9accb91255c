import type { ParameterValue } from './infer.js'
import type { ServerSettings } from './model-server.js'
import { ServingError } from './serving-error.js'

type TraceSettings = Readonly<Record<string, readonly string[]>>

const traceDefaults: TraceSettings = {
  trace_level: ['OFF'],
  trace_rate: ['1000'],
  trace_count: ['-1'],
  log_frequency: ['0'],
  trace_file: [''],
  trace_mode: ['triton'],
}

const traceLevels = ['OFF', 'TIMESTAMPS', 'TENSORS']

/** Least value of each setting that is a number; the largest is that of its type in Triton. */
const traceNumbers: Readonly<Record<string, readonly [least: number, most: number]>> = {
  trace_rate: [0, 2 ** 32 - 1],
  trace_count: [-1, 2 ** 31 - 1],
  log_frequency: [0, 2 ** 32 - 1],
}

type LogSettings = Readonly<Record<string, ParameterValue>>

const logDefaults: LogSettings = {
  log_file: '',
  log_info: true,
  log_warning: true,
  log_error: true,
  log_verbose_level: 0,
  log_format: 'default',
}

/** What `changed` hears of: the log settings as they are now. */
export type LogSettingsListener = (settings: LogSettings) => void

/**
 * Trace and log settings, kept in memory. No client can name a file.
 *
 * Settings of a model follow the server's until they are set for the model.
 */
export class MemorySettings implements ServerSettings {
  #server: TraceSettings = traceDefaults
  readonly #models = new Map<string, TraceSettings>()
  #log: LogSettings = logDefaults

  constructor(readonly logChanged: LogSettingsListener = () => undefined) {}

  trace(model: string): TraceSettings {
    return { ...this.#server, ...this.#models.get(model) }
  }

  setTrace(model: string, changes: Readonly<Record<string, readonly string[] | undefined>>): void {
    for (const [name, value] of Object.entries(changes)) checkTrace(name, value)
    const cleared = (settings: TraceSettings): TraceSettings =>
      Object.fromEntries(Object.entries(settings).filter(([name]) => !(name in changes)))
    const set = Object.fromEntries(
      Object.entries(changes).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value] as const],
      ),
    )
    if (model === '') this.#server = { ...traceDefaults, ...cleared(this.#server), ...set }
    else this.#models.set(model, { ...cleared(this.#models.get(model) ?? {}), ...set })
  }

  log(): LogSettings {
    return this.#log
  }

  setLog(changes: LogSettings): void {
    for (const [name, value] of Object.entries(changes)) checkLog(name, value)
    this.#log = { ...this.#log, ...changes }
    this.logChanged(this.#log)
  }
}

function checkTrace(name: string, values: readonly string[] | undefined): void {
  if (name === 'trace_file')
    throw new ServingError('UNSUPPORTED', 'trace file location can not be updated through network protocol')
  if (name === 'trace_mode')
    throw new ServingError('UNSUPPORTED', 'trace mode can not be updated through network protocol')
  if (!Object.hasOwn(traceDefaults, name))
    throw new ServingError('INVALID_ARG', `unexpected trace setting '${name}'`)
  if (values === undefined) return
  if (name === 'trace_level') checkLevels(values)
  else checkNumber(name, values)
}

function checkLevels(levels: readonly string[]): void {
  const unknown = levels.find((level) => !traceLevels.includes(level))
  if (unknown !== undefined || levels.length === 0)
    throw new ServingError('INVALID_ARG', `unknown trace level '${unknown ?? ''}'`)
  if (levels.includes('OFF') && levels.length > 1)
    throw new ServingError('INVALID_ARG', "Expect only one trace level 'OFF' is specified")
}

function checkNumber(name: string, values: readonly string[]): void {
  const [least, most] = traceNumbers[name] ?? [0, 0]
  const [text = ''] = values
  if (values.length !== 1) throw new ServingError('INVALID_ARG', `expect only 1 value for '${name}'`)
  if (!/^-?\d+$/.test(text)) throw new ServingError('INVALID_ARG', `Unable to parse '${name}', got: ${text}`)
  if (Number(text) < least || Number(text) > most)
    throw new ServingError(
      'INVALID_ARG',
      `Unable to parse '${name}', value is out of range [ ${least}, ${most} ], got: ${text}`,
    )
}

function checkLog(name: string, value: ParameterValue): void {
  if (name === 'log_file')
    throw new ServingError('UNSUPPORTED', 'log file location can not be updated through network protocol')
  if (!Object.hasOwn(logDefaults, name))
    throw new ServingError('INVALID_ARG', `unexpected log setting '${name}'`)
  const valid =
    name === 'log_format'
      ? value === 'default' || value === 'ISO8601'
      : name === 'log_verbose_level'
        ? Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 31
        : typeof value === 'boolean'
  if (valid) return
  if (name === 'log_format')
    throw new ServingError('UNAVAILABLE', `invalid argument for --log_format, got: ${String(value)}`)
  throw new ServingError('INVALID_ARG', `invalid value for '${name}': ${String(value)}`)
}
