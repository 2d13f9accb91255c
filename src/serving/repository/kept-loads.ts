import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import type { Log } from '../../lifecycle/log.js'
import type { ModelFolder } from '../../repository/repository-files.js'
import { uploadedModel, type UploadedModel } from './uploaded-model.js'

const loadSchema = z.strictObject({ config: z.string().optional(), repository: z.string().optional() })
/** `null`: a client unloaded it. */
const fileSchema = z.record(z.string(), loadSchema.nullable())

export type KeptLoad = Readonly<{
  name: string
  config: string | undefined
  upload: UploadedModel | undefined
}>

/**
 * What clients loaded and unloaded, in the order in which they did. It is kept in a file beside what they sent, so that a process that
 * takes the place of one that ended serves the same models.
 */
export class KeptLoads {
  readonly #file: string
  readonly #loads: Map<string, z.infer<typeof loadSchema> | null>

  /** Removes what clients sent and does not serve any more. @param uploadDir - need not be there. */
  constructor(
    readonly uploadDir: string,
    readonly log: Log,
  ) {
    this.#file = join(uploadDir, 'loads.json')
    this.#loads = read(this.#file)
    this.#removeOthers()
  }

  /** Whether a client has loaded or unloaded it since the service started. */
  has(name: string): boolean {
    return this.#loads.has(name)
  }

  loads(): readonly KeptLoad[] {
    return [...this.#loads].flatMap(([name, load]) =>
      load === null
        ? []
        : [
            {
              name,
              config: load.config,
              upload:
                load.repository === undefined
                  ? undefined
                  : uploadedModel(name, join(this.uploadDir, load.repository)),
            },
          ],
    )
  }

  /** @param folder - of files that the client sent. */
  loaded(name: string, config: string | undefined, folder: ModelFolder | undefined): void {
    this.#keep(name, { config, repository: folder === undefined ? undefined : basename(folder.repository) })
  }

  unloaded(name: string): void {
    this.#keep(name, null)
  }

  #keep(name: string, load: z.infer<typeof loadSchema> | null): void {
    this.#loads.delete(name)
    this.#loads.set(name, load)
    try {
      mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 })
      writeFileSync(`${this.#file}.new`, JSON.stringify(Object.fromEntries(this.#loads)), { mode: 0o600 })
      renameSync(`${this.#file}.new`, this.#file)
    } catch (error) {
      this.log.warn({ err: error }, 'what clients load will not be there if the process starts again')
    }
  }

  #removeOthers(): void {
    const kept = new Set([...this.#loads.values()].map((load) => load?.repository))
    for (const entry of entriesOf(this.uploadDir))
      if (!kept.has(entry) && entry !== basename(this.#file))
        rmSync(join(this.uploadDir, entry), { recursive: true, force: true })
  }
}

function read(file: string): Map<string, z.infer<typeof loadSchema> | null> {
  try {
    return new Map(Object.entries(fileSchema.parse(JSON.parse(readFileSync(file, 'utf8')))))
  } catch {
    return new Map()
  }
}

function entriesOf(dir: string): readonly string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}
