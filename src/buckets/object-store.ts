import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { bytesOfAnswer, type S3Answer, S3Client, textOfAnswer } from './s3-client.js'
import type { S3Settings } from './s3-settings.js'
import { xmlFields, xmlSections } from './s3-xml.js'

/** An object of a store, and when it was written, where the store says so. */
export type StoredObject = Readonly<{ bytes: Uint8Array; modifiedMs: number | undefined }>

/** An object as a list tells of it. */
export type ListedObject = Readonly<{
  key: string
  bytes: number
  /** Names its content as the store does, without quotes; empty where the store tells none. */
  etag: string
}>

/** Objects of a store that speaks S3. */
export class ObjectStore {
  readonly #client: S3Client

  constructor(
    readonly settings: S3Settings,
    /** Ends requests that are under way. */
    readonly signal: AbortSignal,
    /** Keys of one answer, of which there may be many. */
    readonly pageKeys = 1_000,
  ) {
    this.#client = new S3Client(settings, signal)
  }

  /**
   * Objects whose keys begin with a prefix, in the order of the store; a page of them is held.
   *
   * @throws ObjectStoreError
   */
  async *list(bucket: string, prefix: string): AsyncGenerator<ListedObject, void> {
    const most = String(this.pageKeys)
    const query = { 'list-type': '2', prefix, 'encoding-type': 'url', 'max-keys': most }
    for (let token: string | undefined = ''; token !== undefined;) {
      const asked = token === '' ? query : { ...query, 'continuation-token': token }
      const answer = await this.#client.ask({ bucket, query: asked }, `s3://${bucket}/${prefix}`)
      const page = await textOfAnswer(answer)
      const inUrlLetters = xmlFields(page, 'EncodingType')[0] === 'url'
      for (const entry of xmlSections(page, 'Contents')) {
        const [key = ''] = xmlFields(entry, 'Key')
        const [etag = ''] = xmlFields(entry, 'ETag')
        const bytes = Number(xmlFields(entry, 'Size')[0])
        yield { key: inUrlLetters ? fromUrl(key) : key, bytes, etag: etag.replaceAll('"', '') }
      }
      ;[token] = xmlFields(page, 'NextContinuationToken')
    }
  }

  /** @throws ObjectStoreError; it may be tried again where it is `retryable` */
  async read(bucket: string, key: string): Promise<StoredObject> {
    const answer = await this.#client.ask({ bucket, key })
    return { bytes: await bytesOfAnswer(answer), modifiedMs: modified(answer) }
  }

  /** Writes an object to a file. @throws ObjectStoreError; what the file system throws */
  async download(bucket: string, key: string, path: string): Promise<Pick<StoredObject, 'modifiedMs'>> {
    const answer = await this.#client.ask({ bucket, key })
    await pipeline(Readable.from(answer.body, { objectMode: false }), createWriteStream(path))
    return { modifiedMs: modified(answer) }
  }

  /**
   * An object as it was listed, with what its content is checked by.
   *
   * @param from - byte where it is to begin, by which `content-range` of the answer goes: not every store gives parts.
   * @throws ObjectStoreError, also where it was replaced since
   */
  open(bucket: string, { key, etag }: ListedObject, from = 0): Promise<S3Answer> {
    return this.#client.ask({
      bucket,
      key,
      headers: {
        'x-amz-checksum-mode': 'ENABLED',
        ...(etag !== '' && { 'if-match': `"${etag}"` }),
        ...(from > 0 && { range: `bytes=${from}-` }),
      },
    })
  }
}

/** Keys may hold letters that XML cannot: a store that can writes them as URLs do. */
function fromUrl(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

function modified({ headers }: S3Answer): number | undefined {
  const atMs = Date.parse(headers.get('last-modified') ?? '')
  return Number.isNaN(atMs) ? undefined : atMs
}
