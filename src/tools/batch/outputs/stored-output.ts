import { rm, stat } from 'node:fs/promises'
import { type ObjectName, ObjectUploads } from '../../../buckets/object-uploads.js'
import { s3Settings } from '../../../buckets/s3-settings.js'
import type { S3Place } from '../../../config/s3-url.js'
import { BatchStateError } from '../batch-errors.js'
import { type Patience, patiently } from '../patience.js'

export type StoredOutputOptions = Readonly<{
  object: S3Place
  /** Where the store is, and who asks. */
  env: Readonly<Record<string, string | undefined>>
  /** Files of the run that become objects, each with what its key has behind that of the output. */
  files: readonly Readonly<{ path: string; suffix: string }>[]
  patience: Patience
  partBytes?: number
}>

/** The output of a run as objects of a store: the run writes files, and they are uploaded once it is done. */
export class StoredOutput {
  readonly #uploads: ObjectUploads

  /** @throws ObjectStoreError where the environment names no store, or half of a login */
  constructor(readonly options: StoredOutputOptions) {
    const { object, env, patience, partBytes } = options
    this.#uploads = new ObjectUploads(s3Settings(env, object.endpoint), patience.signal, partBytes)
  }

  /** Whether the store can be asked and has no such objects. @throws BatchStateError, BatchStoppedError, ObjectStoreError */
  async checkFree(): Promise<void> {
    for (const { suffix } of this.options.files) {
      const name = this.#nameOf(suffix)
      const etag = await patiently(() => this.#uploads.etagOf(name), this.options.patience)
      if (etag !== undefined) throw isThere(name)
    }
  }

  /** @throws BatchStoppedError, ObjectStoreError */
  async forget(): Promise<void> {
    for (const { suffix } of this.options.files)
      await patiently(() => this.#uploads.remove(this.#nameOf(suffix)), this.options.patience)
  }

  /**
   * Uploads what is not empty; what an earlier try has uploaded is found again.
   *
   * @throws BatchStateError where somebody else has written such an object meanwhile; BatchStoppedError, ObjectStoreError
   */
  async upload(): Promise<void> {
    for (const { path, suffix } of this.options.files) {
      const isEmpty = await stat(path).then(
        ({ size }) => size === 0 && suffix !== '',
        () => true,
      )
      if (isEmpty) continue
      const name = this.#nameOf(suffix)
      if (!(await patiently(() => this.#uploads.upload(path, name), this.options.patience)))
        throw isThere(name)
    }
  }

  /** The files are there as objects: the run needs them no more. */
  async removeFiles(): Promise<void> {
    for (const { path } of this.options.files) await rm(path, { force: true })
  }

  #nameOf(suffix: string): ObjectName {
    const { bucket, key } = this.options.object
    return { bucket, key: `${key}${suffix}` }
  }
}

function isThere({ bucket, key }: ObjectName): BatchStateError {
  return new BatchStateError(
    `s3://${bucket}/${key} is there, and no run of this output is known that could go on`,
    'Name another --out, or write over it with --restart.',
  )
}
