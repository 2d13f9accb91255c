import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync as Database } from 'node:sqlite'
import { InternalError } from '../errors.js'
import { nowMs, wallMs } from '../lifecycle/clock.js'
import { finishExchange, logDamage, moveAside, salvageStore } from './salvage/exchange.js'
import { DatabaseSync } from './sqlite.js'
import { StoreFile } from './store-file.js'
import {
  unpackBatch,
  type FromWriter,
  type Rescue,
  type StoreTrouble,
  type ToWriter,
  type WriterStart,
} from './store-messages.js'
import {
  isBusy,
  isStoreDamaged,
  isTroubleOfDisk,
  StoreRescueError,
  StoreTakenError,
  storeTroubleOf,
} from './store-trouble.js'

/** Records deleted in one go: some milliseconds in which nothing is committed. */
const dropAtOnce = 200
/** What is over its bound goes back to so much of it, so that deleting is not done for every record. */
const usedAfterDrop = 0.98
/** A file that is damaged again so soon is on a disk that is. So long it is not tried again where there was no room for it, either. */
const rescueEveryMs = 60_000

type OpenMessage = Extract<ToWriter, { type: 'open' }>

/** Writes the file, keeps it within its bounds, and salvages what is in it where it is damaged. */
export class StoreWriter {
  #file: StoreFile | undefined
  #lock: Database | undefined
  #dropped = 0
  #isOver = false
  #rescuedMs = Number.NEGATIVE_INFINITY
  #rescueFailure: Error | undefined
  /** Done, and nobody was told. */
  #rescued: Rescue | undefined

  constructor(
    readonly start: WriterStart,
    readonly tell: (message: FromWriter) => void,
  ) {}

  receive(message: Exclude<ToWriter, { type: 'close' }>): void {
    try {
      this.#do(message)
    } catch (error) {
      if (message.type === 'forget' || message.type === 'coverage') return this.#noticed(error)
      this.tell({ type: 'failed', trouble: this.#troubleOf(error) })
    } finally {
      if (message.type === 'forget') this.tell({ type: 'forgot' })
    }
  }

  /** Keeps the bounds. @returns whether there is more to do. */
  tend(): boolean {
    try {
      return this.#file !== undefined && this.#dropSome(this.#file)
    } catch (error) {
      this.#noticed(error)
      return false
    }
  }

  figures(): void {
    if (this.#file === undefined) return
    try {
      this.tell({ type: 'figures', figures: this.#file.figures(), dropped: this.#dropped })
      this.#dropped = 0
    } catch (error) {
      this.#noticed(error)
    }
  }

  close(): void {
    this.#file?.close()
    this.#file = undefined
    this.#lock?.close()
    this.#lock = undefined
  }

  #do(message: Exclude<ToWriter, { type: 'close' }>): void {
    switch (message.type) {
      case 'open':
        return this.#open(message)
      case 'commit': {
        const { batch, settled, told, durable } = message
        this.#opened().commit(unpackBatch(batch), settled, told, durable)
        return this.tell({ type: 'committed' })
      }
      case 'coverage':
        return void this.#file?.coverage.replace(message.spans)
      case 'forget':
        return void this.#file?.forget(message.cameraId, message.position)
      default:
        message satisfies never
    }
  }

  #open(message: OpenMessage): void {
    const { path } = this.start
    this.close()
    mkdirSync(dirname(path), { recursive: true })
    this.#lock = lockOf(path)
    finishExchange(path, wallMs())
    let reason = message.damage ?? logDamage(path)
    try {
      if (reason === undefined) return this.#begin(message)
    } catch (error) {
      this.#file?.close()
      this.#file = undefined
      if (!isStoreDamaged(error)) throw error
      reason = storeTroubleOf(error, path)
    }
    this.#rescued = this.#rescue(reason, message.settled)
    this.#begin(message)
  }

  #begin({ from }: OpenMessage): void {
    const { path, epoch, sinks, maxAgeMs } = this.start
    const file = StoreFile.openToWrite(path)
    this.#file = file
    const newest = Math.max(from, file.newest)
    file.ages.begin(file.newest, maxAgeMs, wallMs())
    file.begin(epoch, newest + 1)
    const rescue = this.#rescued
    this.tell({ type: 'opened', newest, sinks: file.useSinks(sinks, newest), ...(rescue && { rescue }) })
    this.#rescued = undefined
    this.#tellGaps(file)
    this.figures()
  }

  /**
   * What can be read of the damaged file takes its place; where nothing can, an empty one does.
   *
   * @throws StoreRescueError where it cannot be done now
   */
  #rescue(reason: string, settled: Readonly<Record<string, number>>): Rescue {
    const { path, sinks } = this.start
    if (nowMs() - this.#rescuedMs < rescueEveryMs)
      throw this.#rescueFailure ?? new StoreRescueError(path, reason)
    this.#rescuedMs = nowMs()
    this.#rescueFailure = undefined
    try {
      const report = salvageStore(path, sinks, settled, wallMs())
      return { reason, report, aside: report.aside }
    } catch (error) {
      // Only for what a person can mend it is worth to wait: without room there will be none for an empty file, either.
      if (error instanceof Error && isTroubleOfDisk(error)) {
        this.#rescueFailure = error
        throw error
      }
      return {
        reason: `${reason}; ${storeTroubleOf(error, path)}`,
        report: undefined,
        aside: moveAside(path, wallMs()),
      }
    }
  }

  #opened(): StoreFile {
    if (this.#file === undefined) throw new InternalError('records are committed to a file that is not open')
    return this.#file
  }

  #dropSome(file: StoreFile): boolean {
    const { maxBytes, maxAgeMs } = this.start
    file.ages.mark(file.newest, maxAgeMs, wallMs())
    const expired = file.ages.expired(maxAgeMs)
    const old = expired === undefined ? 0 : file.dropUpTo(expired.position, dropAtOnce)
    if (expired !== undefined && old === 0) {
      file.coverage.dropOlder(expired.beforeWallMs)
      file.ages.dropOldest()
    }
    const { usedBytes } = file.figures()
    this.#isOver = usedBytes > (this.#isOver ? maxBytes * usedAfterDrop : maxBytes)
    const over = this.#isOver ? file.dropResults(dropAtOnce) : 0
    this.#dropped += old + over
    if (old + over > 0 || expired !== undefined) return true
    this.#isOver = false
    this.#tellGaps(file)
    return false
  }

  #tellGaps(file: StoreFile): void {
    const gaps = file.gaps.all()
    if (gaps.length > 0) this.tell({ type: 'gaps', gaps })
  }

  /** Trouble outside of a commit. Everything but a damaged file is met by the next commit, too, which tells. */
  #noticed(error: unknown): void {
    if (isStoreDamaged(error)) this.tell({ type: 'damaged', reason: storeTroubleOf(error, this.start.path) })
  }

  #troubleOf(error: unknown): StoreTrouble {
    const reason = storeTroubleOf(error, this.start.path)
    return { kind: isStoreDamaged(error) ? 'damaged' : 'failed', reason }
  }
}

/**
 * Held as long as the file is written: the system lets go of it with the process, however that ends.
 *
 * @throws StoreTakenError
 */
function lockOf(path: string, isSecondTry = false): Database {
  const name = `${path}.lock`
  const lock = new DatabaseSync(name, { timeout: 0 })
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    if (isBusy(error)) throw new StoreTakenError(path)
    if (!isStoreDamaged(error) || isSecondTry) throw error
    // There is nothing in it but whether it is held.
    rmSync(name)
    return lockOf(path, true)
  }
}
