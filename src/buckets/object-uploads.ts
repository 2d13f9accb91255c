import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { bytesOfAnswer, S3Client, type S3Request, textOfAnswer } from './s3-client.js'
import { ObjectStoreError, refusedBy } from './s3-errors.js'
import type { S3Settings } from './s3-settings.js'
import { xmlFields, xmlSections, xmlText } from './s3-xml.js'

/** What fits into one part is uploaded in one piece. */
const usualPartBytes = 8 * 1024 ** 2
/** Stores take 10,000. */
const mostParts = 9_000
/** Longest that giving up an upload may take, which nobody waits for but who ends. */
const giveUpWithinMs = 10_000

export type ObjectName = Readonly<{ bucket: string; key: string }>

/** Writes files as objects of a store that speaks S3. An object is there as a whole, or not at all. */
export class ObjectUploads {
  readonly #client: S3Client

  constructor(
    readonly settings: S3Settings,
    /** Ends requests that are under way. */
    readonly signal: AbortSignal,
    /** Of uploads in parts; 5 MiB at least, but for the last one. */
    readonly partBytes = usualPartBytes,
  ) {
    this.#client = new S3Client(settings, signal)
  }

  /** The ETag of an object; undefined where there is none. @throws ObjectStoreError */
  async etagOf(name: ObjectName): Promise<string | undefined> {
    try {
      const answer = await this.#client.ask({ ...name, method: 'HEAD' })
      await bytesOfAnswer(answer)
      return bare(answer.headers.get('etag'))
    } catch (error) {
      if (error instanceof ObjectStoreError && error.status === 404) return undefined
      throw error
    }
  }

  /** One that is not there is fine. @throws ObjectStoreError */
  async remove(name: ObjectName): Promise<void> {
    await this.#done({ ...name, method: 'DELETE' })
  }

  /**
   * Uploads a file as a new object. One of that name which has the same content is taken for what an earlier try has uploaded.
   *
   * @returns whether it is there with this content; `false`: it is there with another.
   * @throws ObjectStoreError; what the file system throws. Nothing is left of an upload in parts then, where the store can be told
   */
  async upload(path: string, name: ObjectName): Promise<boolean> {
    const file = await open(path)
    try {
      const { size } = await file.stat()
      if (size <= this.partBytes) return await this.#inOnePiece(file, size, name)
      return await this.#inParts(file, size, name)
    } finally {
      await file.close()
    }
  }

  async #inOnePiece(file: FileHandle, bytes: number, name: ObjectName): Promise<boolean> {
    const body = await partAt(file, 0, bytes)
    const etag = md5(body).toString('hex')
    const sum = { 'content-md5': md5(body).toString('base64') }
    return this.#unlessThere(name, etag, (headers) =>
      this.#done({ ...name, method: 'PUT', body, headers: { ...sum, ...headers } }),
    )
  }

  async #inParts(file: FileHandle, bytes: number, name: ObjectName): Promise<boolean> {
    await this.#giveUpOlder(name)
    const begun = await textOfAnswer(
      await this.#client.ask({ ...name, method: 'POST', query: { uploads: '' } }),
    )
    const [uploadId = ''] = xmlFields(begun, 'UploadId')
    try {
      const partBytes = Math.max(this.partBytes, Math.ceil(bytes / mostParts))
      const parts: { etag: string; sum: Buffer }[] = []
      for (let at = 0; at < bytes; at += partBytes) {
        const body = await partAt(file, at, Math.min(partBytes, bytes - at))
        const query = { partNumber: String(parts.length + 1), uploadId }
        const headers = { 'content-md5': md5(body).toString('base64') }
        const answer = await this.#client.ask({ ...name, method: 'PUT', body, query, headers })
        await bytesOfAnswer(answer)
        parts.push({ etag: answer.headers.get('etag') ?? '', sum: md5(body) })
      }
      const etag = `${md5(Buffer.concat(parts.map(({ sum }) => sum))).toString('hex')}-${parts.length}`
      const body = completion(parts.map((part) => part.etag))
      const query = { uploadId }
      const isOurs = await this.#unlessThere(name, etag, (headers) =>
        this.#done({ ...name, method: 'POST', body, query, headers }),
      )
      if (!isOurs) await this.#giveUp(name, uploadId)
      return isOurs
    } catch (error) {
      await this.#giveUp(name, uploadId)
      throw error
    }
  }

  /** @param etag - that the object has if it is ours. */
  async #unlessThere(
    name: ObjectName,
    etag: string,
    write: (headers: Readonly<Record<string, string>>) => Promise<void>,
  ): Promise<boolean> {
    try {
      await write({ 'if-none-match': '*' })
      return true
    } catch (error) {
      if (!(error instanceof ObjectStoreError)) throw error
      if (error.status === 412) return (await this.etagOf(name)) === etag
      // Not every store knows the condition; that there is none was seen at the start of the run.
      if (error.status !== 501) throw error
      await write({})
      return true
    }
  }

  /** A process that was killed could tell the store nothing. */
  async #giveUpOlder(name: ObjectName): Promise<void> {
    const query = { uploads: '', prefix: name.key }
    const listed = await this.#client
      .ask({ bucket: name.bucket, query })
      .then(textOfAnswer)
      // Who may not list them leaves them to a rule of the bucket.
      .catch(() => '')
    for (const entry of xmlSections(listed, 'Upload')) {
      const [key] = xmlFields(entry, 'Key')
      const [uploadId = ''] = xmlFields(entry, 'UploadId')
      if (key === name.key) await this.#giveUp(name, uploadId)
    }
  }

  /** Also while all else is being ended. Never rejects: a rule of the bucket removes what is left. */
  async #giveUp(name: ObjectName, uploadId: string): Promise<void> {
    const client = new S3Client(this.settings, AbortSignal.timeout(giveUpWithinMs))
    const answer = await client.ask({ ...name, method: 'DELETE', query: { uploadId } }).catch(() => undefined)
    answer?.cancel()
  }

  /** A store may begin to answer before it knows, and tell in the body that it failed. */
  async #done(asked: S3Request): Promise<void> {
    const answer = await this.#client.ask(asked)
    const [reason] = xmlSections(await textOfAnswer(answer), 'Error').flatMap((inner) =>
      xmlFields(inner, 'Code'),
    )
    if (reason !== undefined)
      throw refusedBy(`s3://${asked.bucket}/${asked.key ?? ''}`, 'written', {
        status: reason === 'PreconditionFailed' ? 412 : 500,
        reason,
        region: undefined,
        clockAheadMs: undefined,
      })
  }
}

function md5(bytes: Uint8Array): Buffer {
  return createHash('md5').update(bytes).digest()
}

function bare(etag: string | null): string {
  return (etag ?? '').replaceAll('"', '')
}

async function partAt(file: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const part = Buffer.alloc(bytes)
  for (let done = 0; done < bytes;) {
    const { bytesRead } = await file.read(part, done, bytes - done, at + done)
    if (bytesRead === 0) throw new Error('the file became shorter while it was uploaded')
    done += bytesRead
  }
  return part
}

function completion(etags: readonly string[]): string {
  const parts = etags.map(
    (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${xmlText(etag)}</ETag></Part>`,
  )
  return `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
}
