import { ObjectStore, type StoredObject } from '../../../buckets/object-store.js'
import { ObjectStoreError } from '../../../buckets/s3-errors.js'
import { s3Settings, type S3Settings } from '../../../buckets/s3-settings.js'
import { isS3UrlFault, parseS3Url, type S3Place } from '../../../config/s3-url.js'
import { BatchInputError } from '../batch-errors.js'

/** What an object store has to say of an input, as an error of the batch. */
function asInputError(error: unknown): unknown {
  if (!(error instanceof ObjectStoreError)) return error
  const { message, hint, retryable } = error
  return new BatchInputError(message, hint, { cause: error, retryable })
}

/** Inputs of a batch in an object store; where it is and who asks is said by the environment. */
export class S3Store {
  readonly #settings: S3Settings
  /** By the store that a URL names; most name none. */
  readonly #stores = new Map<string | undefined, ObjectStore>()

  /** @throws BatchInputError where the environment names no store, or half of a login */
  constructor(
    readonly env: Readonly<Record<string, string | undefined>>,
    /** Ends requests that are under way. */
    readonly signal: AbortSignal,
    /** Keys of one answer, of which there may be many. */
    readonly pageKeys?: number,
  ) {
    try {
      this.#settings = s3Settings(env)
    } catch (error) {
      throw asInputError(error)
    }
  }

  /** @throws BatchInputError for a URL without a bucket */
  parse(url: string): S3Place {
    const place = parseS3Url(url)
    if (!isS3UrlFault(place)) return place
    throw new BatchInputError(place.message, 'Write s3://BUCKET/KEY, or s3://BUCKET/PREFIX.')
  }

  /**
   * Keys that begin with a prefix, in the order of the store; a page of them is held.
   *
   * @throws BatchInputError
   */
  async *list({ endpoint, bucket }: S3Place, prefix: string): AsyncGenerator<string, void> {
    try {
      for await (const { key } of this.#storeAt(endpoint).list(bucket, prefix)) yield key
    } catch (error) {
      throw asInputError(error)
    }
  }

  /** @throws BatchInputError; it may be tried again where it is `retryable` */
  read(url: string): Promise<StoredObject> {
    const { endpoint, bucket, key } = this.parse(url)
    return this.#told(this.#storeAt(endpoint).read(bucket, key))
  }

  /** Writes an object to a file. @throws BatchInputError; what the file system throws */
  download(url: string, path: string): Promise<Pick<StoredObject, 'modifiedMs'>> {
    const { endpoint, bucket, key } = this.parse(url)
    return this.#told(this.#storeAt(endpoint).download(bucket, key, path))
  }

  #storeAt(endpoint: string | undefined): ObjectStore {
    const known = this.#stores.get(endpoint)
    if (known !== undefined) return known
    const settings = endpoint === undefined ? this.#settings : { ...this.#settings, endpoint }
    const store = new ObjectStore(settings, this.signal, this.pageKeys)
    this.#stores.set(endpoint, store)
    return store
  }

  #told<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw asInputError(error)
    })
  }
}
