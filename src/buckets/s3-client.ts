import { Agent as HttpAgent, type IncomingMessage, request } from 'node:http'
import { Agent as HttpsAgent, request as requestByTls } from 'node:https'
import { text as textOf } from 'node:stream/consumers'
import { backoffMs } from '../lifecycle/backoff.js'
import { wallMs } from '../lifecycle/clock.js'
import { delay } from '../lifecycle/delay.js'
import { ObjectStoreError, refusedBy, unreachableStore } from './s3-errors.js'
import type { S3Settings } from './s3-settings.js'
import { xmlFields } from './s3-xml.js'

/** Further tries of one request that the store answers with "later", and the waits before them. */
const retries = 5
const waits = { baseMs: 100, capMs: 2_000 }

export type S3Request = Readonly<{
  method?: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  bucket: string
  /** Absent: the bucket itself is asked. */
  key?: string
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array | string
}>

/** An answer whose body has not come yet. */
export type S3Answer = Readonly<{
  headers: Headers
  /** Its pieces as they come. @throws ObjectStoreError where it breaks off, or nothing comes for too long */
  body: AsyncIterable<Uint8Array>
  /** Lets go of a body that nobody reads. */
  cancel(): void
}>

/**
 * Signs and sends requests to a store that speaks S3. Buckets are named in the path, which every store understands.
 *
 * By Node's own client of HTTP, not by `fetch`: that ends the process where a connection is reset while its reader is slow
 * (`assert(!this.paused)` in Node 24.22), and unpacks what is to be checked as it is.
 */
export class S3Client {
  readonly #agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) }
  readonly #signingKeys = new Map<string, ArrayBuffer>()

  constructor(
    readonly settings: S3Settings,
    /** Ends requests that are under way. */
    readonly signal: AbortSignal,
    /** Longest until an answer begins, and between two pieces of it. */
    readonly silenceMs = 30_000,
  ) {}

  /** @param what - named in errors. @throws ObjectStoreError */
  async ask(asked: S3Request, what = urlOf(asked)): Promise<S3Answer> {
    for (let attempt = 0; ; attempt += 1) {
      const silence = new Silence(this.signal, this.silenceMs)
      try {
        const answer = await this.#send(asked, silence.signal).catch((error: unknown) => {
          throw unreachableStore(what, silence.reasonOr(error))
        })
        if (isGood(answer)) return answerOf(answer, silence, what)
        const error = await refusal(asked, what, answer)
        if (!error.retryable || attempt >= retries) throw error
      } catch (error) {
        if (!(error instanceof ObjectStoreError && isStale(error) && attempt === 0)) throw error
      } finally {
        silence.settle()
      }
      await delay(backoffMs(attempt, waits), this.signal)
    }
  }

  async #send(asked: S3Request, signal: AbortSignal): Promise<IncomingMessage> {
    const { method = 'GET', body } = asked
    const url = new URL(`${this.settings.endpoint}/${pathOf(asked)}`)
    const headers = await this.#signed(url, method, asked.headers ?? {})
    const isPlain = url.protocol === 'http:'
    const agent = isPlain ? this.#agents.http : this.#agents.https
    return new Promise((resolve, reject) => {
      const sent = (isPlain ? request : requestByTls)(url, { method, headers, agent, signal })
      sent.on('response', resolve)
      sent.on('error', (error) => reject(sent.reusedSocket ? new StaleConnection(error) : error))
      // Its length is told by that: stores take no body of unknown length.
      sent.end(body)
    })
  }

  async #signed(
    url: URL,
    method: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<Record<string, string>> {
    const { credentials, region } = this.settings
    if (credentials === undefined) return { ...headers }
    // Loaded by those who name a store.
    const { AwsV4Signer } = await import('aws4fetch')
    const signer = new AwsV4Signer({
      ...credentials,
      ...{ url: url.href, method, headers, region, service: 's3', cache: this.#signingKeys },
    })
    return Object.fromEntries((await signer.sign()).headers)
  }
}

/** A connection that was kept, and that the store had closed by then. */
class StaleConnection extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause })
  }
}

function isStale({ cause }: ObjectStoreError): boolean {
  return cause instanceof StaleConnection
}

function isGood({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300
}

function answerOf(answer: IncomingMessage, silence: Silence, what: string): S3Answer {
  return {
    headers: headersOf(answer),
    body: piecesOf(answer, silence, what),
    cancel: () => void answer.destroy(),
  }
}

function headersOf({ headers }: IncomingMessage): Headers {
  return new Headers(
    Object.entries(headers).flatMap(([name, value = '']) =>
      [value].flat().map((text): [string, string] => [name, text]),
    ),
  )
}

/** Ends what is silent for too long. */
class Silence {
  readonly #cut = new AbortController()
  #timer: NodeJS.Timeout | undefined
  readonly signal: AbortSignal

  constructor(
    outer: AbortSignal,
    readonly atMostMs: number,
  ) {
    this.signal = AbortSignal.any([outer, this.#cut.signal])
    this.listen()
  }

  listen(): void {
    this.#timer = setTimeout(
      () => this.#cut.abort(new Error(`nothing came for ${this.atMostMs / 1e3} s`)),
      this.atMostMs,
    )
  }

  /** Nothing is waited for: what came is being used. */
  settle(): void {
    clearTimeout(this.#timer)
  }

  /** Why it ended, where that was it. */
  reasonOr(error: unknown): unknown {
    return this.#cut.signal.aborted ? this.#cut.signal.reason : error
  }
}

async function* piecesOf(
  answer: IncomingMessage,
  silence: Silence,
  what: string,
): AsyncGenerator<Uint8Array, void> {
  try {
    silence.listen()
    for await (const piece of answer) {
      silence.settle()
      yield piece as Uint8Array
      silence.listen()
    }
  } catch (error) {
    throw unreachableStore(what, silence.reasonOr(error))
  } finally {
    silence.settle()
  }
}

async function refusal(
  { method = 'GET' }: S3Request,
  what: string,
  answer: IncomingMessage,
): Promise<ObjectStoreError> {
  const text = await textOf(answer).catch(() => '')
  const [reason = ''] = xmlFields(text, 'Code')
  const [told] = xmlFields(text, 'Region')
  const headers = headersOf(answer)
  const atMs = Date.parse(headers.get('date') ?? '')
  return refusedBy(what, method === 'GET' || method === 'HEAD' ? 'read' : 'written', {
    status: answer.statusCode ?? 0,
    reason,
    region: headers.get('x-amz-bucket-region') ?? told,
    clockAheadMs: Number.isNaN(atMs) ? undefined : atMs - wallMs(),
  })
}

/** All of a body. @throws ObjectStoreError */
export async function bytesOfAnswer({ body }: S3Answer): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of body) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** The same as text, of an answer that is not large. @throws ObjectStoreError */
export async function textOfAnswer(answer: S3Answer): Promise<string> {
  return Buffer.from(await bytesOfAnswer(answer)).toString()
}

function urlOf({ bucket, key }: S3Request): string {
  return `s3://${bucket}/${key ?? ''}`
}

function pathOf({ bucket, key, query = {} }: S3Request): string {
  const path = key === undefined ? encoded(bucket) : [bucket, ...key.split('/')].map(encoded).join('/')
  // A space is %20: stores that sign a query take a + for itself.
  const asked = Object.entries(query).map(([name, value]) => `${name}=${encoded(value)}`)
  return asked.length === 0 ? path : `${path}?${asked.join('&')}`
}

/** As the signature wants it, which is stricter than a URL. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}
