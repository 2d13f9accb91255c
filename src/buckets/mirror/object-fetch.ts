import { open, type FileHandle } from 'node:fs/promises'
import { backoffMs } from '../../lifecycle/backoff.js'
import { nowMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { digestOf } from '../object-digest.js'
import type { ListedObject, ObjectStore } from '../object-store.js'
import { ObjectStoreError } from '../s3-errors.js'

/** Tries of one object, and the waits between them. */
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
 * Writes an object to a file, to the disk, and checks its length and digest. One that breaks off is tried again.
 *
 * @throws ObjectStoreError; SystemLimitError; what the file system throws. The file is worth nothing then.
 */
export async function fetchObject(
  object: ListedObject,
  path: string,
  options: ObjectFetchOptions,
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await fetchOnce(object, path, options)
    } catch (error) {
      const mayPass = error instanceof ObjectStoreError && error.retryable
      if (!mayPass || attempt + 1 >= tries) throw byTrueName(`${path} cannot be written`, error)
      options.log.warn({ key: object.key, err: error }, 'an object is fetched again')
      if (!(await delay(backoffMs(attempt, waits), options.signal))) throw error
    }
  }
}

async function fetchOnce(object: ListedObject, path: string, options: ObjectFetchOptions): Promise<void> {
  const { store, bucket, log } = options
  const where = `s3://${bucket}/${object.key}`
  const answer = await store.open(bucket, object)
  const digest = digestOf(answer.headers, object.etag)
  const file = await open(path, 'w').catch((error: unknown) => {
    answer.cancel()
    throw error
  })
  try {
    const progress = new Progress(object, log)
    let bytes = 0
    for await (const piece of answer.body) {
      digest?.update(piece)
      bytes += piece.length
      if (bytes <= object.bytes) await writeWhole(file, piece)
      progress.at(bytes)
    }
    if (bytes !== object.bytes)
      throw new ObjectStoreError(
        `${where} came with ${bytes} bytes, and has ${object.bytes}`,
        'What lies between here and the store cuts or changes it; it is tried again.',
        { retryable: true },
      )
    checkDigest(where, digest?.name, digest?.expected, digest?.found())
    if (digest === undefined)
      log.warn(
        { object: where, bytes },
        'the store tells no digest of this object: its length alone was checked',
      )
    await file.datasync()
  } finally {
    await file.close()
  }
}

/** @throws ObjectStoreError */
function checkDigest(where: string, name = '', expected = '', found = ''): void {
  if (expected === found) return
  throw new ObjectStoreError(
    `${where} is not what the store says: its ${name} is ${expected}, and of what came ${found}`,
    'Upload it again, with a checksum (aws s3 cp --checksum-algorithm SHA256). Until then what was fetched before stays.',
    { retryable: true, reason: 'DigestMismatch' },
  )
}

async function writeWhole(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let done = 0; done < piece.length;) {
    const { bytesWritten } = await file.write(piece, done)
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
