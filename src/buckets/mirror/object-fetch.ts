import { open, type FileHandle } from 'node:fs/promises'
import { backoffMs } from '../../lifecycle/backoff.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { digestOf, type ObjectDigest } from '../object-digest.js'
import type { ListedObject, ObjectStore } from '../object-store.js'
import { ObjectStoreError } from '../s3-errors.js'

/** Tries of one object of which nothing comes, and the waits between them. */
const tries = 5
const waits = { baseMs: 200, capMs: 5_000 }
/** Between two lines of the log on an object that takes long. */
const tellEveryMs = 10_000

export type ObjectFetchOptions = Readonly<{
  store: ObjectStore
  bucket: string
  log: Log
  signal: AbortSignal
}>

/**
 * Writes an object to a file, to the disk, and checks its length and digest. One that breaks off goes on where it was.
 *
 * @throws ObjectStoreError; SystemLimitError; what the file system throws. The file is worth nothing then.
 */
export async function fetchObject(
  object: ListedObject,
  path: string,
  options: ObjectFetchOptions,
): Promise<void> {
  try {
    const file = await open(path, 'w')
    try {
      await patientlyFetched(new ObjectFetch(object, file, options), options)
      await file.datasync()
    } finally {
      await file.close()
    }
  } catch (error) {
    throw byTrueName(`${path} cannot be written`, error)
  }
}

async function patientlyFetched(fetch: ObjectFetch, { log, signal }: ObjectFetchOptions): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const before = fetch.bytes
    try {
      return await fetch.go()
    } catch (error) {
      const mayPass = error instanceof ObjectStoreError && error.retryable
      // What is stored so comes so each time.
      if (isDamaged(error) && attempt > 0) throw error
      // What comes on, if slowly, is not given up.
      if (fetch.bytes > before) attempt = 0
      if (!mayPass || attempt + 1 >= tries) throw error
      log.warn({ key: fetch.object.key, bytes: fetch.bytes, err: error }, 'an object is fetched on')
      if (!(await delay(backoffMs(attempt, waits), signal))) throw error
    }
  }
}

/** An object on its way into a file. */
class ObjectFetch {
  /** That are in the file. */
  bytes = 0
  #isBegun = false
  #digest: ObjectDigest | undefined
  readonly #progress: Progress

  constructor(
    readonly object: ListedObject,
    readonly file: FileHandle,
    readonly options: ObjectFetchOptions,
  ) {
    this.#progress = new Progress(object, options.log)
  }

  /** Fetches what is missing. @throws ObjectStoreError; what the file system throws */
  async go(): Promise<void> {
    const where = `s3://${this.options.bucket}/${this.object.key}`
    // A connection may be cut behind the last byte, and there is no part that begins there.
    if (!this.#isBegun || this.bytes < this.object.bytes) await this.#receive(where)
    this.#check(where)
  }

  async #receive(where: string): Promise<void> {
    const { object, options } = this
    const answer = await options.store.open(options.bucket, object, this.bytes)
    const from = Number(/^bytes (\d+)-/.exec(answer.headers.get('content-range') ?? '')?.[1] ?? 0)
    // Not every store gives parts; and what a part says of checksums need not be of the whole.
    if (from !== this.bytes || from === 0) this.#beginAt(answer.headers)
    for await (const piece of answer.body) {
      if (this.bytes + piece.length > object.bytes)
        throw otherLength(where, this.bytes + piece.length, object)
      await writeWhole(this.file, piece, this.bytes)
      this.#digest?.update(piece)
      this.bytes += piece.length
      this.#progress.at(this.bytes)
    }
    if (this.bytes !== object.bytes) throw otherLength(where, this.bytes, object)
  }

  #beginAt(headers: Headers): void {
    this.bytes = 0
    this.#isBegun = true
    this.#digest = digestOf(headers, this.object.etag)
  }

  #check(where: string): void {
    const digest = this.#digest
    const { bytes, options } = this
    if (digest === undefined) {
      options.log.warn(
        { object: where, bytes },
        'the store tells no digest of this object: its length alone was checked',
      )
      return
    }
    // Whatever comes of it, the next try begins anew.
    this.bytes = 0
    checkDigest(where, digest.name, digest.expected, digest.found())
  }
}

function otherLength(where: string, bytes: number, object: ListedObject): ObjectStoreError {
  return new ObjectStoreError(
    `${where} came with ${bytes} bytes, and has ${object.bytes}`,
    'What lies between here and the store cuts or changes it; it is tried again.',
    { retryable: true },
  )
}

const damaged = 'DigestMismatch'

/** Whether the bytes of an object are not those of its digest. */
export function isDamaged(error: unknown): boolean {
  return error instanceof ObjectStoreError && error.reason === damaged
}

/** @throws ObjectStoreError */
function checkDigest(where: string, name: string, expected: string, found: string): void {
  if (expected === found) return
  throw new ObjectStoreError(
    `${where} is not what the store says: its ${name} is ${expected}, and of what came ${found}`,
    'Upload it again, with a checksum (aws s3 cp --checksum-algorithm SHA256). Until then what was fetched before stays.',
    { retryable: true, reason: damaged },
  )
}

async function writeWhole(file: FileHandle, piece: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < piece.length;) {
    const { bytesWritten } = await file.write(piece, done, piece.length - done, at + done)
    done += bytesWritten
  }
}

/** Tells how far a large object is. */
class Progress {
  #toldMs = nowMs()

  constructor(
    readonly object: ListedObject,
    readonly log: Log,
  ) {}

  at(bytes: number): void {
    if (nowMs() - this.#toldMs < tellEveryMs) return
    this.#toldMs = nowMs()
    const { key, bytes: total } = this.object
    const percent = Math.floor((100 * bytes) / total)
    this.log.info({ key, bytes, total, percent }, 'an object is being fetched')
  }
}
