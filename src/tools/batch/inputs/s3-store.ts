import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { AwsClient } from 'aws4fetch'
import { BatchInputError } from '../batch-errors.js'

/** Tries of one request that the store answers with "later"; between them it waits 50 ms, 100 ms and so on. */
const retries = 5
/** Longest until an answer begins, and between two pieces of it. */
const silenceMs = 30_000

/** Where a store is and who asks, by the usual variables. */
export type S3Settings = Readonly<{
  /** `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`; absent: the one of Amazon for the region. */
  endpoint: string
  region: string
  /** Absent: requests are not signed, as public buckets take them. */
  credentials: Readonly<{ accessKeyId: string; secretAccessKey: string; sessionToken?: string }> | undefined
}>

/** @throws BatchInputError where one half of the credentials is missing, or the endpoint is no URL */
export function s3Settings(env: Readonly<Record<string, string | undefined>>): S3Settings {
  const set = (name: string) => (env[name] === '' ? undefined : env[name])
  const region = set('AWS_REGION') ?? set('AWS_DEFAULT_REGION') ?? 'us-east-1'
  const endpoint =
    set('AWS_ENDPOINT_URL_S3') ?? set('AWS_ENDPOINT_URL') ?? `https://s3.${region}.amazonaws.com`
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    throw new BatchInputError(
      `AWS_ENDPOINT_URL is "${endpoint}", which is no URL`,
      'Write http://HOST:PORT or https://HOST.',
    )
  const [accessKeyId, secretAccessKey] = [set('AWS_ACCESS_KEY_ID'), set('AWS_SECRET_ACCESS_KEY')]
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined))
    throw new BatchInputError(
      `${accessKeyId === undefined ? 'AWS_ACCESS_KEY_ID' : 'AWS_SECRET_ACCESS_KEY'} is not set, and the other half of the credentials is`,
      'Set both, or neither for a public bucket.',
    )
  const sessionToken = set('AWS_SESSION_TOKEN')
  const credentials =
    accessKeyId === undefined || secretAccessKey === undefined
      ? undefined
      : { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
  return { endpoint: endpoint.replace(/\/+$/, ''), region, credentials }
}

export function isS3Url(text: string): boolean {
  return text.startsWith('s3://')
}

/** An object of a store, and when it was written, where the store says so. */
export type S3Object = Readonly<{ bytes: Uint8Array; modifiedMs: number | undefined }>

/** Reads a store that speaks S3: its objects, and their keys. Buckets are named in the path, which every store understands. */
export class S3Store {
  #client: Promise<AwsClient> | undefined

  constructor(
    readonly settings: S3Settings,
    /** Ends requests that are under way. */
    readonly signal: AbortSignal,
    /** Keys of one answer, of which there may be many. */
    readonly pageKeys = 1_000,
  ) {}

  /** @throws BatchInputError for a URL without a bucket */
  parse(url: string): Readonly<{ bucket: string; key: string }> {
    const [, bucket, key = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/s.exec(url) ?? []
    if (bucket === undefined)
      throw new BatchInputError(`"${url}" names no bucket`, 'Write s3://BUCKET/KEY, or s3://BUCKET/PREFIX.')
    return { bucket, key }
  }

  /**
   * Keys that begin with a prefix, in the order of the store; a page of them is held.
   *
   * @throws BatchInputError
   */
  async *list(bucket: string, prefix: string): AsyncGenerator<string, void> {
    for (let token: string | undefined = ''; token !== undefined;) {
      const most = String(this.pageKeys)
      const query = { 'list-type': '2', prefix, 'encoding-type': 'url', 'max-keys': most }
      const asked = Object.entries(token === '' ? query : { ...query, 'continuation-token': token })
      // A space is %20: stores that sign a query take a + for itself.
      const text = asked.map(([name, value]) => `${name}=${encoded(value)}`).join('&')
      const where = `s3://${bucket}/${prefix}`
      const answer = await this.#get(`${encoded(bucket)}?${text}`, where)
      const page = await answer.text().catch((error: unknown) => {
        throw unreachable(where, error)
      })
      const inUrlLetters = fieldsOf(page, 'EncodingType')[0] === 'url'
      for (const key of fieldsOf(page, 'Key')) yield inUrlLetters ? fromUrl(key) : key
      ;[token] = fieldsOf(page, 'NextContinuationToken')
    }
  }

  /** @throws BatchInputError; it may be tried again where it is `retryable` */
  async read(url: string): Promise<S3Object> {
    const answer = await this.#object(url)
    try {
      return { bytes: new Uint8Array(await answer.arrayBuffer()), modifiedMs: modified(answer) }
    } catch (error) {
      throw unreachable(url, error)
    }
  }

  /** Writes an object to a file. @throws BatchInputError; what the file system throws */
  async download(url: string, path: string): Promise<Pick<S3Object, 'modifiedMs'>> {
    const answer = await this.#object(url)
    if (answer.body === null) throw unreachable(url, new Error('it answered without a body'))
    const body = Readable.fromWeb(answer.body)
    let broken: unknown
    body.once('error', (error) => (broken = error))
    try {
      await pipeline(body, createWriteStream(path))
    } catch (error) {
      throw broken === error ? unreachable(url, error) : error
    }
    return { modifiedMs: modified(answer) }
  }

  #object(url: string): Promise<Response> {
    const { bucket, key } = this.parse(url)
    return this.#get(`${encoded(bucket)}/${key.split('/').map(encoded).join('/')}`, url)
  }

  async #get(path: string, what: string): Promise<Response> {
    const { endpoint } = this.settings
    const signal = AbortSignal.any([this.signal, AbortSignal.timeout(silenceMs)])
    const answer = await this.#fetch(`${endpoint}/${path}`, signal).catch((error: unknown) => {
      throw unreachable(what, error)
    })
    if (answer.ok) return answer
    const reason = fieldsOf(await answer.text().catch(() => ''), 'Code')[0] ?? `status ${answer.status}`
    throw new BatchInputError(`${what} cannot be read: ${reason}`, hintFor(answer.status), {
      retryable: answer.status >= 500 || answer.status === 429,
    })
  }

  async #fetch(url: string, signal: AbortSignal): Promise<Response> {
    const { credentials, region } = this.settings
    if (credentials === undefined) return fetch(url, { signal })
    // Loaded by those who name a store.
    this.#client ??= import('aws4fetch').then(
      (library) => new library.AwsClient({ ...credentials, region, service: 's3', retries }),
    )
    return (await this.#client).fetch(url, { signal })
  }
}

/** As the signature wants it, which is stricter than a URL. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Texts of all elements of that name. Answers of a store have no attributes on these, and nothing inside them. */
function fieldsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text = '']) =>
    text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(lt|gt|amp|quot|apos));/gi, (_, hex, decimal, entity: string) =>
      entity === undefined
        ? String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(String(hex), 16))
        : entities[entity.toLowerCase()]!,
    ),
  )
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

/** Keys may hold letters that XML cannot: a store that can writes them as URLs do. */
function fromUrl(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

function modified(answer: Response): number | undefined {
  const atMs = Date.parse(answer.headers.get('last-modified') ?? '')
  return Number.isNaN(atMs) ? undefined : atMs
}

function hintFor(status: number): string {
  if (status === 404)
    return 'See that bucket and key are spelled right, and that AWS_ENDPOINT_URL names the store.'
  if (status === 401 || status === 403)
    return 'Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION of somebody who may read it.'
  if (status === 301 || status === 307 || status === 400) return 'Set AWS_REGION to the region of the bucket.'
  return 'The store answers with an error of its own; its log may say more.'
}

function unreachable(what: string, error: unknown): BatchInputError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : (error as Error)
  return new BatchInputError(
    `${what} cannot be reached: ${cause.message}`,
    'See that AWS_ENDPOINT_URL names the store, and that it runs.',
    { cause: error, retryable: true },
  )
}
