import { accessSync, constants, existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { GantryError } from '../../errors.js'
import { systemLimit } from '../../lifecycle/system-limit.js'

/** A file that was asked for cannot be written. */
export class ReportFileError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint: string
  constructor(path: string, cause: unknown) {
    const limit = systemLimit(cause)
    const reason = limit?.reason ?? (cause instanceof Error ? cause.message : String(cause))
    super(`cannot write ${path}: ${reason}`, { cause })
    this.name = 'ReportFileError'
    this.hint = limit?.hint ?? 'Name a file in a folder that is there and can be written.'
  }
}

/**
 * Looks whether a file can be written, before what goes into it takes hours.
 *
 * @throws ReportFileError `GANTRY_ENVIRONMENT`
 */
export function checkReportFile(path: string): void {
  try {
    const target = resolve(path)
    if (existsSync(target) && statSync(target).isDirectory()) throw new Error('it is a folder')
    accessSync(existsSync(target) ? target : dirname(target), constants.W_OK)
  } catch (error) {
    throw new ReportFileError(path, error)
  }
}

/**
 * Writes a file whole, or not at all: what stood there before is kept where that fails.
 *
 * @throws ReportFileError `GANTRY_ENVIRONMENT`
 */
export function writeReportFile(path: string, text: string): void {
  const target = resolve(path)
  // A device or a pipe is written to as it is.
  const isPlain = !existsSync(target) || statSync(target).isFile()
  const part = isPlain ? `${target}.${process.pid}.part` : target
  try {
    writeFileSync(part, text)
    if (isPlain) renameSync(part, target)
  } catch (error) {
    if (isPlain) rmSync(part, { force: true })
    throw new ReportFileError(path, error)
  }
}
