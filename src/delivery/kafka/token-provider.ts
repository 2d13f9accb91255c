import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { rootCertificates } from 'node:tls'
import { z } from 'zod'
import type { KafkaLogin } from '../../config/kafka-login.js'
import { readTextFile } from '../../config/text-file.js'
import { GantryError } from '../../errors.js'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import type { ClientTls } from '../../lifecycle/client-tls.js'
import { tlsFailure } from '../../lifecycle/tls-failure.js'

const answerMs = 5_000
const maxAnswerBytes = 256 * 1024
/** A token is asked for anew when this much of its life is over. */
const usedShare = 0.8
/** Life of a token that does not tell it. */
const usualLifeMs = 300_000

/** No token could be had to log in to the brokers with. */
export class KafkaTokenError extends GantryError {
  readonly code = 'GANTRY_SINK_UNAVAILABLE'
  override readonly retryable = true
  constructor(
    reason: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(`kafka: no token for the login: ${reason}`, { cause })
    this.name = 'KafkaTokenError'
  }
}

const answerSchema = z.looseObject({
  access_token: z.string().min(1),
  expires_in: z.coerce.number().positive().optional().catch(undefined),
})

/** Tokens for SASL OAUTHBEARER: given, from a file that is read each time, or of an endpoint by client credentials (RFC 6749, 4.4). */
export class TokenProvider {
  #kept: { token: string; untilMs: number } | undefined

  /** @param tls - of the brokers; its CA is trusted beside those of the system. */
  constructor(
    readonly login: KafkaLogin,
    readonly tls: ClientTls,
  ) {}

  /** @throws KafkaTokenError */
  async token(): Promise<string> {
    const { token, tokenFile } = this.login
    if (token !== undefined) return token
    if (tokenFile !== undefined) return tokenOfFile(tokenFile)
    if (this.#kept !== undefined && nowMs() < this.#kept.untilMs) return this.#kept.token
    const { access_token, expires_in } = await this.#ask()
    const lifeMs = expires_in === undefined ? (lifeOf(access_token) ?? usualLifeMs) : expires_in * 1000
    this.#kept = { token: access_token, untilMs: nowMs() + lifeMs * usedShare }
    return access_token
  }

  /** The next login asks for a new one: a broker has refused the last. */
  forget(): void {
    this.#kept = undefined
  }

  async #ask(): Promise<z.infer<typeof answerSchema>> {
    const { tokenEndpoint = '' } = this.login
    const { status, body } = await this.#post(tokenEndpoint)
    const answer = answerSchema.safeParse(jsonOf(body))
    if (status === 200 && answer.success) return answer.data
    const told = errorOf(body)
    if (status === 400 || status === 401 || status === 403)
      throw new KafkaTokenError(
        `${tokenEndpoint} answers ${status}${told}`,
        'Correct clientId, clientSecret and scope of sinks.kafka.sasl.',
      )
    const reason = status === 200 ? 'answers without an access_token' : `answers ${status}${told}`
    throw new KafkaTokenError(
      `${tokenEndpoint} ${reason}`,
      'Correct sinks.kafka.sasl.tokenEndpoint: it is the URL that takes grant_type=client_credentials.',
    )
  }

  async #post(url: string): Promise<{ status: number; body: string }> {
    const { clientId = '', clientSecret = '', scope } = this.login
    const form = new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) }).toString()
    // RFC 6749, 2.3.1: both are form-encoded first.
    const basic = Buffer.from([clientId, clientSecret].map(formEncoded).join(':')).toString('base64')
    const tls = await this.tls.options()
    const ca = tls?.ca === undefined ? {} : { ca: [...rootCertificates, tls.ca as string] }
    const isTls = /^https:/i.test(url)
    const options = {
      method: 'POST',
      headers: {
        authorization: `Basic ${basic}`,
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': Buffer.byteLength(form),
        accept: 'application/json',
      },
      agent: false,
      signal: AbortSignal.timeout(answerMs),
    } as const
    try {
      return await new Promise((resolve, reject) => {
        const call = isTls ? requestHttps(url, { ...options, ...ca }) : requestHttp(url, options)
        call.on('error', reject)
        call.on('response', (response) => {
          let body = ''
          response.setEncoding('utf8')
          response.on('error', reject)
          response.on('data', (chunk: string) => {
            body += chunk
            if (body.length > maxAnswerBytes) call.destroy(new Error('its answer is too long'))
          })
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
        })
        call.end(form)
      })
    } catch (error) {
      const advice = tlsFailure(error, 'sinks.kafka.ssl', 'an http:// URL in sinks.kafka.sasl.tokenEndpoint')
      const reason = advice?.reason ?? (error instanceof Error ? error.message : String(error))
      const fix = advice?.fix ?? 'Look whether it runs and sinks.kafka.sasl.tokenEndpoint names it.'
      throw new KafkaTokenError(`${url}: ${reason}`, fix, error)
    }
  }
}

function tokenOfFile(path: string): string {
  try {
    const token = readTextFile(path).trim()
    if (token !== '') return token
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new KafkaTokenError(reason, 'Write the token into the file of sinks.kafka.sasl.tokenFile.', error)
  }
  throw new KafkaTokenError(
    `${path} is empty`,
    'Write the token into the file of sinks.kafka.sasl.tokenFile.',
  )
}

function formEncoded(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice(2)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** `: invalid_client, Client authentication failed`, as RFC 6749 has it. */
function errorOf(body: string): string {
  const told = z
    .looseObject({ error: z.string(), error_description: z.string().optional() })
    .safeParse(jsonOf(body))
  if (!told.success) return ''
  const { error, error_description } = told.data
  return `: ${[error, error_description].filter(Boolean).join(', ').slice(0, 300)}`
}

/** By the `exp` of a JWT. */
function lifeOf(token: string): number | undefined {
  const body = jsonOf(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  const { exp } = z.looseObject({ exp: z.number() }).safeParse(body).data ?? {}
  return exp === undefined ? undefined : Math.max(0, exp * 1000 - wallMs())
}
