import { Client, type Dispatcher } from 'undici'
import type { WebhookConfig } from '../../config/webhook.js'
import { formatPath } from '../../config/setting-path.js'
import type { NamedSink } from '../../config/sinks.js'
import type { AddressPolicy } from '../../lifecycle/address-policy.js'
import { ClientTls } from '../../lifecycle/client-tls.js'
import { wallMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { systemLimit } from '../../lifecycle/system-limit.js'
import { tlsFailure } from '../../lifecycle/tls-failure.js'
import { addressesOf, connectChecked, type FarPlace } from '../checked-socket.js'
import type { RecordLink, RecordLinks, SendFailure } from '../record-link.js'
import type { OutgoingRecord } from '../record-queue.js'
import { RecordsRefusedError, type Refusal } from '../refusal.js'
import { SinkUnavailableError, uncapitalised } from '../sink-unavailable.js'
import { withoutSecretPieces } from './untold-secrets.js'
import { meaningOf } from './webhook-answer.js'
import { batchBody, binaryBody } from './webhook-body.js'
import { messageIdOf, webhookHeaders } from './webhook-signature.js'

/** Of an answer's body: what is read of it, and what of that is told. */
const answerLimits = { readBytes: 4_096, toldCharacters: 200, headerBytes: 16_384, bodyMs: 1_000 }
/** A connection is kept for so long without a request. Servers close theirs after five seconds or so, and a request must not meet that. */
const keptMs = 1_000

/** What a webhook is posted with, and from where its errors come. */
export type WebhookParts = Readonly<{
  webhook: NamedSink<WebhookConfig>
  userAgent: string
  policy: AddressPolicy
  log: Log
}>

/** It will never take these records. */
class WebhookRefusal extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.detail)
    this.name = 'WebhookRefusal'
  }
}

/** Posts to one URL, over one connection at a time. */
export class WebhookLinks implements RecordLinks {
  readonly #place: FarPlace
  readonly #url: URL
  readonly #tls: ClientTls
  readonly #setting: string

  constructor(readonly parts: WebhookParts) {
    const { name, path, config } = parts.webhook
    this.#setting = formatPath(path)
    this.#url = new URL(config.url)
    const { hostname, port, protocol } = this.#url
    this.#place = {
      sink: name,
      setting: `${this.#setting}.url`,
      host: hostname,
      port: Number(port) || (protocol === 'https:' ? 443 : 80),
    }
    this.#tls = new ClientTls(
      protocol === 'https:' ? (config.tls ?? true) : false,
      `${this.#setting}.tls`,
      parts.log,
    )
  }

  /** @throws SinkUnavailableError for an address that may not be connected to; whether somebody answers shows the first request. */
  async open(signal: AbortSignal): Promise<RecordLink> {
    await addressesOf(this.#place, this.parts.policy)
    signal.throwIfAborted()
    return new WebhookLink(this.parts, this.#url, (cut) => this.#connect(cut))
  }

  /** Connects and ends the connection; nothing is posted. @throws what {@link failureOf} has words for */
  async probe(signal: AbortSignal): Promise<void> {
    const socket = await this.#connect(signal)
    socket.on('error', () => undefined).destroy()
  }

  readonly failureOf = (error: unknown): SendFailure => {
    const own = error instanceof SinkUnavailableError ? error : undefined
    const { name } = this.parts.webhook
    return {
      reason: own === undefined ? this.#reasonOf(error) : `${own.reason}; ${uncapitalised(own.hint)}`,
      refusal: error instanceof WebhookRefusal ? error.refusal : undefined,
      closed: isClosed(error),
      missed: isTimeout(error),
      ...(own?.retryAfterMs !== undefined && own.sink === name && { retryAfterMs: own.retryAfterMs }),
    }
  }

  async #connect(signal: AbortSignal) {
    return connectChecked(this.#place, this.parts.policy, await this.#tls.options(), signal)
  }

  #reasonOf(error: unknown): string {
    const { timeoutMs } = this.parts.webhook.config
    if (error instanceof RecordsRefusedError) return error.refusal.detail
    if (isTimeout(error)) return `${this.#place.host} does not answer within ${timeoutMs} ms`
    const advice = tlsFailure(error, `${this.#setting}.tls`, `an http:// URL in ${this.#place.setting}`)
    if (advice !== undefined) return `${advice.reason}; ${advice.fix}`
    const limit = systemLimit(error)
    if (limit !== undefined) return `${limit.reason}; ${uncapitalised(limit.hint)}`
    return error instanceof Error ? error.message : String(error)
  }
}

class WebhookLink implements RecordLink {
  readonly #closed = new AbortController()
  readonly #client: Client

  constructor(
    readonly parts: WebhookParts,
    readonly url: URL,
    connect: (signal: AbortSignal) => ReturnType<typeof connectChecked>,
  ) {
    const { timeoutMs } = parts.webhook.config
    this.#client = new Client(url.origin, {
      connect: (_, done) => {
        connect(AbortSignal.any([this.#closed.signal, AbortSignal.timeout(timeoutMs)])).then(
          (socket) => done(null, socket),
          (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), null),
        )
      },
      pipelining: 1,
      keepAliveTimeout: keptMs,
      keepAliveMaxTimeout: keptMs,
      maxHeaderSize: answerLimits.headerBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  async send(records: readonly OutgoingRecord[], deadlineMs: number): Promise<void> {
    const [only] = records
    if (only === undefined) return
    const { name, config } = this.parts.webhook
    const { headers, body } = config.maxBatchRecords === 1 ? binaryBody(only) : batchBody(records)
    const id = messageIdOf(records.map((record) => record.id))
    const response = await this.#client.request({
      method: 'POST',
      path: `${this.url.pathname}${this.url.search}`,
      headers: {
        'user-agent': this.parts.userAgent,
        ...lowerCased(config.headers),
        ...headers,
        ...webhookHeaders(id, body, webhookSecrets(config), wallMs()),
      },
      body,
      signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(deadlineMs)]),
    })
    const told = shown(await beginningOf(response.body), this.#secrets())
    const after = response.headers['retry-after']
    const meaning = meaningOf(response.statusCode, Array.isArray(after) ? after[0] : after, told, wallMs())
    if (meaning.kind === 'taken') return
    if (meaning.kind === 'refused') throw new WebhookRefusal(meaning.refusal)
    const hint = `Look at the log of what answers at ${this.url.host}.`
    throw new SinkUnavailableError(
      name,
      `${this.url.host} ${meaning.reason}`,
      hint,
      undefined,
      meaning.retryAfterMs,
    )
  }

  /** A camera: its records keep their order. */
  partitionOf({ cameraId }: OutgoingRecord): string {
    return cameraId
  }

  close(): void {
    this.#closed.abort(new Error('the connection was closed'))
    this.#client.destroy().catch(() => undefined)
  }

  /** What an answer may repeat of what it was sent. */
  #secrets(): readonly string[] {
    const { config } = this.parts.webhook
    const { pathname, search } = this.url
    return [...webhookSecrets(config), ...Object.values(config.headers), pathname, search]
  }
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

export function webhookSecrets({ secret = [] }: Pick<WebhookConfig, 'secret'>): readonly string[] {
  return typeof secret === 'string' ? [secret] : secret
}

/** The beginning of an answer's body. Whatever is behind it, and whoever takes long over it, ends the connection. */
async function beginningOf(body: Dispatcher.ResponseData['body']): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  const timer = new AbortController()
  const read = (async () => {
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part)
      bytes += part.length
      if (bytes > answerLimits.readBytes) break
    }
  })().catch(() => undefined)
  await Promise.race([read, delay(answerLimits.bodyMs, timer.signal)])
  timer.abort()
  body.on('error', () => undefined)
  body.destroy()
  return Buffer.concat(parts).subarray(0, answerLimits.readBytes).toString()
}

/** One line of it, without what is secret. */
function shown(text: string, secrets: readonly string[]): string {
  return withoutSecretPieces(text, secrets)
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim()
    .slice(0, answerLimits.toldCharacters)
}

function* causesOf(error: unknown): Generator<Error & { code?: unknown }> {
  let next = error
  for (let depth = 0; depth < 8 && next instanceof Error; depth += 1) {
    yield next
    next = next.cause
  }
}

function isTimeout(error: unknown): boolean {
  return [...causesOf(error)].some(({ name }) => name === 'TimeoutError')
}

/** It had taken the connection, and ended it over a request. */
function isClosed(error: unknown): boolean {
  return [...causesOf(error)].some(
    ({ code }) => code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE',
  )
}
