import { ServingError } from '../../tensors/serving-error.js'

/** By Triton's names; every value is a list of texts. */
export type TraceSettings = Readonly<Record<string, readonly string[]>>
/** `undefined` sets a value back. */
export type TraceChanges = Readonly<Record<string, readonly string[] | undefined>>

export const traceDefaults = {
  trace_level: ['OFF'],
  trace_rate: ['1000'],
  trace_count: ['-1'],
  log_frequency: ['0'],
  trace_file: [''],
  trace_mode: ['triton'],
} as const satisfies TraceSettings

/** Least value of each setting that is a number; the largest is that of its type in Triton. */
const numbers: Readonly<Record<string, readonly [least: number, most: number]>> = {
  trace_rate: [0, 2 ** 32 - 1],
  trace_count: [-1, 2 ** 31 - 1],
  log_frequency: [0, 2 ** 32 - 1],
}

/** @throws ServingError for names and values that are not known, and for files and modes, which no client chooses */
export function checkTraceChanges(changes: TraceChanges): void {
  for (const [name, values] of Object.entries(changes)) checkTrace(name, values)
}

/** @throws ServingError where traces are asked for and none could be written */
export function checkTraceable(settings: TraceSettings, hasFiles: boolean): void {
  if (!isTracing(settings)) return
  const reason =
    numberOf(settings, 'trace_rate') === 0
      ? 'sample rate must be non-zero'
      : hasFiles
        ? undefined
        : 'trace file name is not given'
  if (reason !== undefined)
    throw new ServingError('INVALID_ARG', `Attempting to set invalid trace setting :${reason}`)
}

export function isTracing(settings: TraceSettings): boolean {
  return settings.trace_level?.includes('TIMESTAMPS') === true
}

export function numberOf(settings: TraceSettings, name: string): number {
  return Number(settings[name]?.[0] ?? 0)
}

/** What is set, without what `changes` sets back. */
export function withChanges(settings: TraceSettings, changes: TraceChanges): TraceSettings {
  const kept = Object.entries(settings).filter(([name]) => !(name in changes))
  const set = Object.entries(changes).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return Object.fromEntries([...kept, ...set]) as TraceSettings
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
  if (levels.includes('TENSORS'))
    throw new ServingError('UNSUPPORTED', "trace level 'TENSORS' is not supported: tensors are not written")
  const unknown = levels.find((level) => level !== 'OFF' && level !== 'TIMESTAMPS')
  if (unknown !== undefined || levels.length === 0)
    throw new ServingError('INVALID_ARG', `unknown trace level '${unknown ?? ''}'`)
  if (levels.includes('OFF') && levels.length > 1)
    throw new ServingError('INVALID_ARG', "Expect only one trace level 'OFF' is specified")
}

function checkNumber(name: string, values: readonly string[]): void {
  const [least, most] = numbers[name] ?? [0, 0]
  const [text = ''] = values
  if (values.length !== 1) throw new ServingError('INVALID_ARG', `expect only 1 value for '${name}'`)
  if (!/^-?\d+$/.test(text)) throw new ServingError('INVALID_ARG', `Unable to parse '${name}', got: ${text}`)
  if (Number(text) < least || Number(text) > most)
    throw new ServingError(
      'INVALID_ARG',
      `Unable to parse '${name}', value is out of range [ ${least}, ${most} ], got: ${text}`,
    )
}
