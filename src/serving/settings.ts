import type { ParameterValue } from '../runtime/infer.js'
import type { ModelServerSettings } from './model-server.js'
import { ServingError } from '../tensors/serving-error.js'
import type { TraceChanges, TraceSettings } from '../runtime/tracing/trace-settings.js'
import { Tracer } from '../runtime/tracing/tracer.js'

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

/** Trace and log settings, kept in memory. No client can name a file. */
export class MemorySettings implements ModelServerSettings {
  #log: LogSettings = logDefaults

  constructor(
    readonly logChanged: LogSettingsListener = () => undefined,
    readonly tracer: Tracer = new Tracer(),
  ) {}

  trace(model: string): TraceSettings {
    return this.tracer.settings(model)
  }

  setTrace(model: string, changes: TraceChanges): void {
    this.tracer.change(model, changes)
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
