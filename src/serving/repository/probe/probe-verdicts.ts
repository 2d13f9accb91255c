import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import type { Log } from '../../../lifecycle/log.js'
import type { FolderPrint } from '../../../repository/repository-files.js'

const maxVerdicts = 1_000

const fileSchema = z.record(z.string(), z.string())

/** Models that were found good, so that a start does not try them again. Kept in a file; without one everything is tried. */
export class ProbeVerdicts {
  readonly #good: Map<string, string>

  constructor(
    readonly file: string,
    readonly log: Log,
  ) {
    this.#good = readVerdicts(file)
  }

  /** @param conditions - what besides the files decides, such as versions and limits. */
  isGood(modelPath: string, print: FolderPrint, conditions: string): boolean {
    return this.#good.get(modelPath) === digest(print, conditions)
  }

  keep(modelPath: string, print: FolderPrint, conditions: string): void {
    this.#good.delete(modelPath)
    this.#good.set(modelPath, digest(print, conditions))
    for (const oldest of this.#good.keys()) {
      if (this.#good.size <= maxVerdicts) break
      this.#good.delete(oldest)
    }
    try {
      mkdirSync(dirname(this.file), { recursive: true })
      writeFileSync(`${this.file}.new`, JSON.stringify(Object.fromEntries(this.#good)), { mode: 0o600 })
      renameSync(`${this.file}.new`, this.file)
    } catch (error) {
      this.log.warn({ file: this.file, err: error }, 'models will be tried again at the next start')
    }
  }
}

function readVerdicts(file: string): Map<string, string> {
  try {
    return new Map(Object.entries(fileSchema.parse(JSON.parse(readFileSync(file, 'utf8')))))
  } catch {
    return new Map()
  }
}

function digest(print: FolderPrint, conditions: string): string {
  return createHash('sha256')
    .update(JSON.stringify([conditions, ...print]))
    .digest('base64url')
}
