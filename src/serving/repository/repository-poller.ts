import { readOnnxFile } from '../../repository/onnx-file.js'
import type { Log } from '../../lifecycle/log.js'
import { isSystemLimit } from '../../lifecycle/system-limit.js'
import { modelFileIn, versionDirOf, readDefinition } from '../../repository/model-definition.js'
import { backendOf } from '../../repository/supported-config.js'
import type { ModelManager } from './model-manager.js'
import type { ModelRecord } from './model-record.js'
import {
  printModel,
  samePrint,
  type FolderPrint,
  type ModelFolder,
} from '../../repository/repository-files.js'

/**
 * Follows changes of the repositories.
 *
 * A change is taken once two looks in a row saw the same files and each model file can be read to its end, so that a model is not
 * loaded while somebody still writes it. What was tried and failed is tried again when its files change again.
 */
export class RepositoryPoller {
  readonly #seen = new Map<string, FolderPrint>()
  readonly #tried = new Map<string, FolderPrint>()
  #missing: ReadonlySet<string> = new Set()
  #ambiguous: ReadonlySet<string> = new Set()
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(
    readonly manager: ModelManager,
    readonly pollMs: number,
    readonly log: Log,
  ) {}

  start(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      void this.look()
        .catch((error: unknown) => this.log.error({ err: error }, 'looking for changed models failed'))
        .then(() => this.start())
    }, this.pollMs)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  /** One look. Resolves when what it found is loaded and unloaded. */
  async look(): Promise<void> {
    await this.manager.lookAtRepositories()
    const scan = this.manager.scan()
    this.#tellAmbiguous(scan.ambiguous)
    const changed = [...scan.folders.values()].filter((folder) => this.#isToLoad(folder))
    const missing = this.manager
      .records()
      .filter((record) => !record.gone && !scan.folders.has(record.name) && !scan.ambiguous.has(record.name))
      .filter((record) => this.#isReadable(record))
      .map(({ name }) => name)
    const gone = missing.filter((name) => this.#missing.has(name))
    this.#missing = new Set(missing)
    for (const name of gone) this.#forget(name)
    if (changed.length > 0 || gone.length > 0)
      await this.manager.follow(
        changed.map(({ name }) => name),
        gone,
      )
  }

  /** What serves goes on: another folder of its name is no reason to take it away. */
  #tellAmbiguous(ambiguous: ReadonlyMap<string, string>): void {
    for (const [name, reason] of ambiguous)
      if (!this.#ambiguous.has(name)) this.log.warn({ model: name, reason }, 'model is there more than once')
    this.#ambiguous = new Set(ambiguous.keys())
  }

  /** A folder that cannot be read does not say that its models are gone. */
  #isReadable({ definition }: ModelRecord): boolean {
    const { unreadable } = this.manager
    return definition === undefined ? unreadable.size === 0 : !unreadable.has(definition.folder.repository)
  }

  #isToLoad(folder: ModelFolder): boolean {
    const print = printOf(folder)
    if (print === undefined) return false
    const before = this.#seen.get(folder.name)
    this.#seen.set(folder.name, print)
    const applied = this.manager.record(folder.name)?.definition
    if (applied?.folder.dir === folder.dir && samePrint(applied.print, print)) return false
    // What was held out is not to come back before it changes.
    if (before === undefined && this.manager.isHeldOut(folder.name)) this.#tried.set(folder.name, print)
    if (before === undefined || !samePrint(before, print)) return false
    const tried = this.#tried.get(folder.name)
    if (tried !== undefined && samePrint(tried, print)) return false
    this.#tried.set(folder.name, print)
    return this.#isComplete(folder)
  }

  #isComplete(folder: ModelFolder): boolean {
    try {
      const definition = readDefinition(folder)
      if (backendOf(definition.config) === 'onnxruntime')
        for (const version of definition.versions)
          readOnnxFile(modelFileIn(versionDirOf(definition, version), definition.config))
      return true
    } catch (error) {
      // It says nothing of the files: the next look tries again.
      if (isSystemLimit(error)) this.#tried.delete(folder.name)
      this.log.warn({ model: folder.name, err: error }, 'changed model is not complete, what serves is kept')
      return false
    }
  }

  #forget(name: string): void {
    this.#seen.delete(name)
    this.#tried.delete(name)
  }
}

/** A configuration that cannot be read names no other folder. */
function filesDirIn(folder: ModelFolder): string {
  try {
    return readDefinition(folder).filesDir
  } catch {
    return folder.dir
  }
}

/** `undefined` while files come and go under the reader. */
function printOf(folder: ModelFolder): FolderPrint | undefined {
  try {
    return printModel(folder, filesDirIn(folder))
  } catch {
    return undefined
  }
}
