import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { GantryError } from '../errors.js'
import { readTextFile } from '../config/text-file.js'
import { shortestToken } from '../config/server.js'
import { byTrueName } from '../lifecycle/system-limit.js'

/** A file that is to hold the token holds something else. */
export class TokenFileError extends GantryError {
  readonly code = 'GANTRY_CONFIG'
  readonly hint: string
  constructor(path: string, problem: string, cause?: unknown) {
    super(`${path} ${problem}`, { cause })
    this.name = 'TokenFileError'
    this.hint = `Write a token of ${shortestToken} characters or more into it, or remove it: one is made then.`
  }
}

/**
 * Makes a file with a token of 48 hexadecimal digits, unless it is there. It appears whole: of several that make it at once one wins, and
 * the others keep what it made.
 *
 * @param mode - rights of the file, whatever the umask is.
 * @returns whether it was made.
 * @throws TokenFileError if there is something that holds no token; SystemLimitError if it cannot be read or made
 */
export function keptToken(path: string, mode: number): boolean {
  try {
    return !holdsToken(path) && make(path, mode)
  } catch (error) {
    if (error instanceof TokenFileError) throw error
    const named = byTrueName(`the token cannot be kept in ${path}`, error)
    throw named === error
      ? new TokenFileError(path, `cannot hold a token: ${messageOf(error)}`, error)
      : named
  }
}

function make(path: string, mode: number): boolean {
  mkdirSync(dirname(path), { recursive: true })
  const partial = join(dirname(path), `.token-${process.pid}-${randomBytes(4).toString('hex')}`)
  try {
    writeFileSync(partial, `${randomBytes(24).toString('hex')}\n`, { flag: 'wx', mode: 0o600, flush: true })
    chmodSync(partial, mode)
    // Unlike a rename it takes the place of no other.
    linkSync(partial, path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST' && holdsToken(path)) return false
    throw error
  } finally {
    rmSync(partial, { force: true })
  }
}

/** @throws TokenFileError for a file that holds none; what the file system says */
function holdsToken(path: string): boolean {
  let text: string
  try {
    // As settings are read: one end of a line is no part of it.
    text = readTextFile(path).replace(/\r?\n$/, '')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
  if (text.trim() === '') throw new TokenFileError(path, 'is empty')
  if (text.length >= shortestToken) return true
  throw new TokenFileError(path, `holds a token of ${text.length} characters, which is too short`)
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
