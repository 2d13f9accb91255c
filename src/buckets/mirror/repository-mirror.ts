import { statfs } from 'node:fs/promises'
import { nowMs } from '../../lifecycle/clock.js'
import { Deadline } from '../../lifecycle/deadline.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { RunLock } from '../../lifecycle/run-lock.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import type { ObjectStore } from '../object-store.js'
import { ObjectStoreError } from '../s3-errors.js'
import { listedFiles, type MirroredFile, printOfFiles } from './listed-files.js'
import type { MirrorFolder } from './mirror-folder.js'
import { fetchObject, isDamaged } from './object-fetch.js'

/** Between two lists of what changes while it is fetched. */
const changingEveryMs = 1_000
/** While a store is followed, an object that came damaged is fetched again after this at the earliest. */
const damagedAgainMs = 5 * 60_000
/** Between two looks whether another process is done with the same repository. */
const lockEveryMs = 200

export type RepositoryMirrorOptions = Readonly<{
  /** As the settings name it. */
  url: string
  bucket: string
  /** Empty, or with a slash at its end. */
  prefix: string
  store: ObjectStore
  folder: MirrorFolder
  /** Objects that are fetched side by side. */
  fetchesAtATime: number
  /** After this time of a refresh no further object is begun; what it has fetched by then stays fetched. */
  refreshAtMostMs: number
  /** An object came whole. */
  onFetched: (bytes: number) => void
  log: Log
  signal: AbortSignal
}>

/**
 * Keeps a folder like a repository in an object store. The folder is one state of the store: what was listed is fetched, and is read from
 * the folder once the store lists the same again.
 */
export class RepositoryMirror {
  readonly #where: string
  #last: Promise<unknown> = Promise.resolve()
  /** What the last refresh listed. */
  #seen: string | undefined
  /** Objects that came damaged, by their ids. */
  readonly #damaged = new Map<string, Readonly<{ error: unknown; atMs: number }>>()

  constructor(readonly options: RepositoryMirrorOptions) {
    const { bucket, prefix } = options
    this.#where = `s3://${bucket}/${prefix}`
  }

  /** Whether there is something to read, of now or of before. */
  async isThere(): Promise<boolean> {
    return (await this.options.folder.published()) !== undefined
  }

  /**
   * Takes what the store has by now. One after another.
   *
   * @param settled - a change is taken once two refreshes in a row have listed it.
   * @throws ObjectStoreError, SystemLimitError; the reason of the signal. What was read before is read on then
   */
  refresh(settled = false): Promise<void> {
    const next = this.#last.then(() => this.#refresh(settled))
    this.#last = next.catch(() => undefined)
    return next
  }

  async #refresh(settled: boolean): Promise<void> {
    const { folder, url, refreshAtMostMs } = this.options
    const deadline = new Deadline(refreshAtMostMs)
    let lock: RunLock | undefined
    try {
      await folder.prepare(url)
      lock = await this.#takeLock(deadline)
      await this.#bring(settled, deadline)
    } catch (error) {
      throw byTrueName(`the mirror of ${url} in ${folder.dir} cannot be written`, error)
    } finally {
      await lock?.release()
    }
  }

  async #bring(settled: boolean, deadline: Deadline): Promise<void> {
    const { folder, log, url, signal } = this.options
    for (let files = await this.#list(); ;) {
      const print = printOfFiles(files)
      const isSettled = !settled || this.#seen === print
      this.#seen = print
      await folder.sweep(files)
      if ((await folder.published()) === print) return
      if (settled) this.#checkDamaged(files)
      const areWhole = await this.#fetch(files, deadline)
      const again = await this.#list()
      if (areWhole && printOfFiles(again) === print) {
        if (!isSettled) return
        await folder.publish(files)
        log.info({ repository: url, files: files.length }, 'a repository of an object store was taken')
        return
      }
      if (deadline.leftMs === 0)
        throw new ObjectStoreError(
          `${this.#where} changes all the time: no two lists of it were the same`,
          'Wait until the upload is over, or upload a model under a new version.',
          { retryable: true },
        )
      if (!(await delay(changingEveryMs, signal))) throw signal.reason as Error
      files = again
    }
  }

  #list(): Promise<readonly MirroredFile[]> {
    const { store, bucket, prefix } = this.options
    return listedFiles(store.list(bucket, prefix), this.#where, prefix)
  }

  /** @returns `false` where an object was replaced since it was listed. @throws ObjectStoreError, SystemLimitError */
  async #fetch(files: readonly MirroredFile[], deadline: Deadline): Promise<boolean> {
    const { folder, fetchesAtATime, log, url } = this.options
    const missing = await folder.missing(files)
    if (missing.length === 0) return true
    const bytes = missing.reduce((sum, { object }) => sum + object.bytes, 0)
    await this.#checkRoom(missing, bytes)
    log.info({ repository: url, objects: missing.length, bytes }, 'fetching a repository of an object store')
    const left = [...missing]
    const failures: unknown[] = []
    const work = async () => {
      for (let file = left.shift(); file !== undefined && failures.length === 0; file = left.shift()) {
        this.#checkTime(deadline, left.length + 1)
        await this.#fetchOne(file)
      }
    }
    const workers = Array.from({ length: fetchesAtATime }, () =>
      work().catch((error: unknown) => void failures.push(error)),
    )
    await Promise.all(workers)
    const failure = failures.find((each) => !isReplaced(each))
    if (failure !== undefined) throw failure as Error
    return failures.length === 0
  }

  async #fetchOne(file: MirroredFile): Promise<void> {
    const { store, folder, bucket, onFetched, log, signal } = this.options
    try {
      await fetchObject(file.object, folder.partOf(file), { store, bucket, log, signal })
      await folder.keep(file)
      onFetched(file.object.bytes)
      this.#damaged.delete(file.id)
    } catch (error) {
      await folder.drop(file)
      if (isDamaged(error)) this.#damaged.set(file.id, { error, atMs: nowMs() })
      throw error
    }
  }

  /** Nobody is to be sent large objects at each look that are damaged where they are stored. @throws ObjectStoreError */
  #checkDamaged(files: readonly MirroredFile[]): void {
    for (const { id } of files) {
      const known = this.#damaged.get(id)
      if (known !== undefined && nowMs() - known.atMs < damagedAgainMs) throw known.error as Error
    }
  }

  /** @throws ObjectStoreError */
  #checkTime({ leftMs }: Deadline, left: number): void {
    this.options.signal.throwIfAborted()
    if (leftMs > 0) return
    throw new ObjectStoreError(
      `${this.#where} was not fetched in ${this.options.refreshAtMostMs / 1e3} s: ${left} objects are left`,
      'It goes on with the next look; raise models.mirror.refreshSeconds where the line is slow.',
      { retryable: true },
    )
  }

  /** @throws ObjectStoreError */
  async #checkRoom(missing: readonly MirroredFile[], bytes: number): Promise<void> {
    const { dir } = this.options.folder
    const { bavail, bsize } = await statfs(dir)
    if (bytes < bavail * bsize) return
    const largest = missing.reduce((a, b) => (b.object.bytes > a.object.bytes ? b : a)).object
    throw new ObjectStoreError(
      `${this.#where} needs ${bytes} bytes more in ${dir}, where ${bavail * bsize} are free; the largest object is ${largest.key} with ${largest.bytes}`,
      'Make room, or set models.mirror.path to a larger disk.',
    )
  }

  /** @throws ObjectStoreError where another process holds it for longer than there is time */
  async #takeLock(deadline: Deadline): Promise<RunLock> {
    const { folder, signal, url } = this.options
    const taken = (pid: number) =>
      new ObjectStoreError(
        `process ${pid} fetches ${url} into ${folder.dir} already`,
        'Wait for it, or name another folder in models.mirror.path.',
        { retryable: true, reason: lockTaken },
      )
    for (;;) {
      try {
        return await RunLock.take(folder.lockPath, taken)
      } catch (error) {
        if (!(error instanceof ObjectStoreError && error.reason === lockTaken) || deadline.leftMs === 0)
          throw error
        if (!(await delay(lockEveryMs, signal))) throw signal.reason as Error
      }
    }
  }
}

const lockTaken = 'MirrorLocked'

/** It is another object by now, or none. */
function isReplaced(error: unknown): boolean {
  return error instanceof ObjectStoreError && /^(PreconditionFailed|NoSuchKey)$/.test(error.reason)
}
