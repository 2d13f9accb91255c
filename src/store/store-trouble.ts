import { GantryError } from '../errors.js'
import { systemLimit } from '../lifecycle/system-limit.js'

/** SQLite's codes, without what they say in detail. */
const codes = {
  ...{ busy: 5, noMemory: 7, readOnly: 8, io: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 },
} as const

/** The file is of a later version. */
export class StoreVersionError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint =
    'Run that version, or move the file away: what it holds is then not delivered and not shown.'
  constructor(path: string, version: number) {
    super(`${path} was written by a later version of Gantry (its form is ${version})`)
    this.name = 'StoreVersionError'
  }
}

/** Another service writes to the file. */
export class StoreTakenError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint = 'Give each service a store.path of its own.'
  constructor(path: string) {
    super(`${path} is written by another service`)
    this.name = 'StoreTakenError'
  }
}

/** The file is damaged, and what is in it is not salvaged now. */
export class StoreRescueError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint = 'Look at the disk it is on; a moment later it is tried again.'
  constructor(path: string, reason: string) {
    super(`${path} is damaged again, shortly after the last time: ${reason}`)
    this.name = 'StoreRescueError'
  }
}

/** Bytes of a record are not those that were written, which SQLite does not see. */
export class RecordDamagedError extends GantryError {
  readonly code = 'GANTRY_STORE_UNAVAILABLE'
  readonly hint = 'Look at the disk it is on; what can be read of the file is salvaged.'
  constructor(position: number) {
    super(`the record at ${position} is not as it was written`)
    this.name = 'RecordDamagedError'
  }
}

function codeOf(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

/** Whether what is in the file can be trusted no more. */
export function isStoreDamaged(error: unknown): boolean {
  if (error instanceof RecordDamagedError) return true
  const code = codeOf(error)
  return code === codes.corrupt || code === codes.notADatabase
}

/** Whether it is trouble of the disk or the system, which ends without a change of the file. */
export function isTroubleOfDisk(error: unknown): boolean {
  const { busy, noMemory, readOnly, io, full, cannotOpen } = codes
  const code = codeOf(error)
  if (code !== undefined)
    return [busy, noMemory, readOnly, io, full, cannotOpen].some((each) => each === code)
  return error instanceof Error && 'syscall' in error
}

export function isBusy(error: unknown): boolean {
  return codeOf(error) === codes.busy
}

/** What is wrong with the file, for people. */
export function storeTroubleOf(error: unknown, path: string): string {
  if (error instanceof GantryError) return `${error.message}. ${error.hint}`
  const code = codeOf(error)
  if (code === codes.full) return `no space is left for ${path}`
  if (code === codes.readOnly || code === codes.cannotOpen) return `${path} cannot be written`
  const limit = systemLimit(error)
  if (limit !== undefined) return `${path}: ${limit.reason}`
  return `${path}: ${error instanceof Error ? error.message : String(error)}`
}
