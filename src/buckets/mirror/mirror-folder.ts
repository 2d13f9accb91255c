import { constants, readlinkSync } from 'node:fs'
import {
  copyFile,
  link,
  mkdir,
  readdir,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { wallMs } from '../../lifecycle/clock.js'
import { isThere } from '../../lifecycle/system-limit.js'
import { type MirroredFile, printOfFiles } from './listed-files.js'

/** Who reads a repository by its mirror: a service goes over to new files when it looks for them, whatever a command has fetched since. */
export type MirrorReader = 'service' | 'command'

/** A tree of files that was replaced stays so long: who has begun to read it reads it to its end. */
const readWithinMs = 10 * 60_000
/** What a folder of the cache is called while it is made, and a file while it is fetched. */
const unfinished = '.part'

/**
 * What was fetched of one repository:
 *
 *     objects/ID           what was fetched and checked, by the content
 *     trees/PRINT/         the repository as it was listed once, of hard links to these
 *     READER/NAME          a link to the tree that a reader reads; another one takes its place at once
 */
export class MirrorFolder {
  /** What is read; not there before something is published. */
  readonly path: string
  readonly lockPath: string
  readonly #objects: string
  readonly #trees: string

  constructor(
    readonly dir: string,
    reader: MirrorReader,
    name: string,
  ) {
    this.path = join(dir, reader, name)
    this.lockPath = join(dir, 'lock')
    this.#objects = join(dir, 'objects')
    this.#trees = join(dir, 'trees')
  }

  /** @param url - of the repository, told beside it for people. @throws what the file system throws */
  async prepare(url: string): Promise<void> {
    for (const dir of [this.#objects, this.#trees, dirname(this.path)]) await mkdir(dir, { recursive: true })
    await writeFile(join(this.dir, 'url'), `${url}\n`)
  }

  /** What is published, by its print; undefined before the first time. */
  async published(): Promise<string | undefined> {
    const print = await printAt(this.path)
    return print !== undefined && isThere(join(this.#trees, print)) ? print : undefined
  }

  /** Where a file is written before it counts. */
  partOf({ id }: MirroredFile): string {
    return join(this.#objects, `${id}${unfinished}`)
  }

  /** The file at {@link partOf} is whole. */
  async keep(file: MirroredFile): Promise<void> {
    await rename(this.partOf(file), this.#pathOf(file))
  }

  async drop(file: MirroredFile): Promise<void> {
    await rm(this.partOf(file), { force: true })
  }

  /** Those that are still to be fetched, one for each content. */
  async missing(files: readonly MirroredFile[]): Promise<readonly MirroredFile[]> {
    const absent = new Map<string, MirroredFile>()
    for (const file of files) {
      const bytes = await stat(this.#pathOf(file)).then(
        ({ size }) => size,
        () => -1,
      )
      if (bytes !== file.object.bytes) absent.set(file.id, file)
    }
    return [...absent.values()]
  }

  /** Lets these files, which all are there, be the ones that are read: all at once. */
  async publish(files: readonly MirroredFile[]): Promise<void> {
    const print = printOfFiles(files)
    const tree = join(this.#trees, print)
    if (!isThere(tree)) {
      const part = `${tree}${unfinished}`
      await rm(part, { recursive: true, force: true })
      for (const file of files) await linkTo(this.#pathOf(file), join(part, file.path))
      await rename(part, tree)
    }
    const before = await printAt(this.path)
    if (before === print) return
    const next = `${this.path}${unfinished}`
    await rm(next, { force: true })
    await symlink(join('..', 'trees', print), next)
    await rename(next, this.path)
    const now = wallMs() / 1e3
    if (before !== undefined) await utimes(join(this.#trees, before), now, now).catch(() => undefined)
  }

  /** Removes what no reader reads and `files` do not need. */
  async sweep(files: readonly MirroredFile[]): Promise<void> {
    const read = await this.#read()
    for (const name of await readdir(this.#trees)) {
      const path = join(this.#trees, name)
      const { mtimeMs } = await stat(path)
      if (!read.has(name) && wallMs() - mtimeMs > readWithinMs)
        await rm(path, { recursive: true, force: true })
    }
    const needed = new Set(files.map(({ id }) => id))
    for (const name of await readdir(this.#objects)) {
      const path = join(this.#objects, name)
      // One that a tree has takes no room of its own.
      const { nlink } = await stat(path)
      if (!needed.has(name) && nlink === 1) await rm(path, { force: true })
    }
  }

  async #read(): Promise<ReadonlySet<string>> {
    const prints = new Set<string>()
    for (const reader of ['service', 'command'] satisfies MirrorReader[])
      for (const name of await readdir(join(this.dir, reader)).catch(() => [])) {
        const print = await printAt(join(this.dir, reader, name))
        if (print !== undefined) prints.add(print)
      }
    return prints
  }

  #pathOf({ id }: MirroredFile): string {
    return join(this.#objects, id)
  }
}

/** Whether a folder is a repository that is kept like one in an object store. */
export function isMirror(path: string): boolean {
  try {
    return /^\.\.\/trees\/[0-9a-f]{64}$/.test(readlinkSync(path))
  } catch {
    return false
  }
}

async function printAt(path: string): Promise<string | undefined> {
  return readlink(path).then(basename, () => undefined)
}

/** Some file systems know no hard links. */
async function linkTo(object: string, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await link(object, path).catch((error: NodeJS.ErrnoException) => {
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS|EMLINK|EXDEV)$/.test(error.code ?? '')) throw error
    return copyFile(object, path, constants.COPYFILE_FICLONE)
  })
}
