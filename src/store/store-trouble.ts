import { GantryError } from '../errors.js'
import { systemLimit } from '../lifecycle/system-limit.js'

/** SQLite's codes, without what they say in detail. */
const codes = { busy: 5, readOnly: 8, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const

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

function codeOf(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

/** Whether what is in the file can be trusted no more. */
export function isStoreDamaged(error: unknown): boolean {
  const code = codeOf(error)
  return code === codes.corrupt || code === codes.notADatabase
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
