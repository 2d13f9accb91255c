import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { InternalError } from '../errors.js'
import { wallMs } from '../lifecycle/clock.js'
import { StoreFile } from './store-file.js'
import {
  unpackBatch,
  type FromWriter,
  type StoreTrouble,
  type ToWriter,
  type WriterStart,
} from './store-messages.js'
import { isBusy, isStoreDamaged, StoreTakenError, storeTroubleOf } from './store-trouble.js'

/** Records deleted in one go: some milliseconds in which nothing is committed. */
const dropAtOnce = 200
/** What is over its bound goes back to so much of it, so that deleting is not done for every record. */
const usedAfterDrop = 0.98

/** Writes the file, keeps it within its bounds, and puts it out of the way where it is damaged. */
export class StoreWriter {
  #file: StoreFile | undefined
  #lock: DatabaseSync | undefined
  #dropped = 0
  #isOver = false

  constructor(
    readonly start: WriterStart,
    readonly tell: (message: FromWriter) => void,
  ) {}

  receive(message: Exclude<ToWriter, { type: 'close' }>): void {
    try {
      this.#do(message)
    } catch (error) {
      // The next commit meets the same trouble.
      if (message.type === 'forget' || message.type === 'coverage') return
      this.tell({ type: 'failed', trouble: this.#troubleOf(error) })
    } finally {
      if (message.type === 'forget') this.tell({ type: 'forgot' })
    }
  }

  /** Keeps the bounds. @returns whether there is more to do. */
  tend(): boolean {
    try {
      return this.#file !== undefined && this.#dropSome(this.#file)
    } catch {
      // The next commit meets the same trouble, and tells.
      return false
    }
  }

  figures(): void {
    if (this.#file === undefined) return
    try {
      this.tell({ type: 'figures', figures: this.#file.figures(), dropped: this.#dropped })
      this.#dropped = 0
    } catch {
      // As above.
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
        return this.#open(message.from)
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

  #open(from: number): void {
    const { path, epoch, sinks } = this.start
    this.close()
    mkdirSync(dirname(path), { recursive: true })
    this.#lock = lockOf(path)
    const file = StoreFile.openToWrite(path)
    this.#file = file
    const newest = Math.max(from, file.newest)
    file.begin(epoch, newest + 1)
    this.tell({ type: 'opened', newest, sinks: file.useSinks(sinks, newest) })
    const gaps = file.gaps()
    if (gaps.length > 0) this.tell({ type: 'gaps', gaps })
    this.figures()
  }

  #opened(): StoreFile {
    if (this.#file === undefined) throw new InternalError('records are committed to a file that is not open')
    return this.#file
  }

  #dropSome(file: StoreFile): boolean {
    const { maxBytes, maxAgeMs } = this.start
    const oldestMs = wallMs() - maxAgeMs
    file.coverage.dropOlder(oldestMs)
    const old = file.dropOlder(oldestMs, dropAtOnce)
    const { usedBytes } = file.figures()
    this.#isOver = usedBytes > (this.#isOver ? maxBytes * usedAfterDrop : maxBytes)
    const over = this.#isOver ? file.dropResults(dropAtOnce) : 0
    this.#dropped += old + over
    if (old + over > 0) return true
    this.#isOver = false
    const gaps = file.gaps()
    if (gaps.length > 0) this.tell({ type: 'gaps', gaps })
    return false
  }

  /** A damaged file goes out of the way. Everything else may pass: the file stays as it is. */
  #troubleOf(error: unknown): StoreTrouble {
    const { path } = this.start
    const reason = storeTroubleOf(error, path)
    if (!isStoreDamaged(error)) return { kind: 'failed', reason }
    this.close()
    try {
      const aside = StoreFile.moveAside(path, wallMs())
      return { kind: 'moved', reason: `${reason}; it is now ${aside}, and an empty one takes its place` }
    } catch (moving) {
      return {
        kind: 'failed',
        reason: `${reason}, and it cannot be moved away: ${storeTroubleOf(moving, path)}`,
      }
    }
  }
}

/**
 * Held as long as the file is written: the system lets go of it with the process, however that ends.
 *
 * @throws StoreTakenError
 */
function lockOf(path: string): DatabaseSync {
  const lock = new DatabaseSync(`${path}.lock`, { timeout: 0 })
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw isBusy(error) ? new StoreTakenError(path) : error
  }
}
