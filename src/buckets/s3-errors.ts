import { GantryError } from '../errors.js'

/** An object store that is away, or refuses, or holds what cannot be used. */
export class ObjectStoreError extends GantryError {
  readonly code = 'GANTRY_OBJECT_STORE'
  override readonly retryable: boolean
  /** Of the store, such as `NoSuchKey`; empty where none was told. */
  readonly reason: string
  /** Of HTTP; 0 where there was no answer. */
  readonly status: number
  constructor(
    message: string,
    readonly hint: string,
    options: Readonly<{ cause?: unknown; retryable?: boolean; reason?: string; status?: number }> = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'ObjectStoreError'
    this.retryable = options.retryable ?? false
    this.reason = options.reason ?? ''
    this.status = options.status ?? 0
  }
}

/** What a store said no with. */
export type S3Refusal = Readonly<{
  status: number
  /** Of the store; empty where it told none. */
  reason: string
  /** Where the bucket is, as the store tells it. */
  region: string | undefined
  /** Time of the store minus that of this machine. */
  clockAheadMs: number | undefined
}>

/** Codes that say that the same request may be taken later. */
const passing = /^(SlowDown|InternalError|ServiceUnavailable|RequestTimeout|Throttling|TooManyRequests)/

/** @param what - the URL that was asked for. */
export function refusedBy(what: string, verb: 'read' | 'written', refusal: S3Refusal): ObjectStoreError {
  const { status, reason } = refusal
  return new ObjectStoreError(
    `${what} cannot be ${verb}: ${reason || `status ${status}`}`,
    hintFor(refusal),
    {
      retryable: status >= 500 || status === 429 || passing.test(reason),
      reason,
      status,
    },
  )
}

export function unreachableStore(what: string, error: unknown): ObjectStoreError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : (error as Error)
  return new ObjectStoreError(
    `${what} cannot be reached: ${cause.message}`,
    hintForCode((cause as NodeJS.ErrnoException).code ?? ''),
    { cause: error, retryable: true },
  )
}

function hintForCode(code: string): string {
  if (/CERT|ISSUER|UNABLE_TO_VERIFY/.test(code))
    return 'Set NODE_EXTRA_CA_CERTS to the PEM file of the CA that signed the certificate of the store, and name it as the certificate does.'
  if (/^(ERR_SSL_|EPROTO$)/.test(code))
    return 'See whether the store speaks TLS at that port; without, write http://.'
  return 'See that AWS_ENDPOINT_URL names the store, and that it runs.'
}

const hints: Readonly<Record<string, string>> = {
  NoSuchBucket: 'See that the bucket is spelled right, and that AWS_ENDPOINT_URL names the store.',
  ExpiredToken: 'Renew AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN: their time is over.',
  InvalidObjectState: 'It is in an archive: restore it, or store it in another storage class.',
  PreconditionFailed: 'It was replaced meanwhile; the next look takes the new one.',
}

function hintFor({ status, reason, region, clockAheadMs }: S3Refusal): string {
  if (reason === 'RequestTimeTooSkewed') return `Set the clock of this machine (NTP)${offBy(clockAheadMs)}.`
  if (region !== undefined) return `Set AWS_REGION to ${region}, where the bucket is.`
  const known = hints[reason]
  if (known !== undefined) return known
  if (status === 404)
    return 'See that bucket and key are spelled right, and that AWS_ENDPOINT_URL names the store.'
  if (status === 401 || status === 403)
    return 'Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION of somebody who may do that.'
  if (status === 301 || status === 307 || status === 400) return 'Set AWS_REGION to the region of the bucket.'
  return 'The store answers with an error of its own; its log may say more.'
}

function offBy(clockAheadMs: number | undefined): string {
  if (clockAheadMs === undefined) return ''
  const minutes = Math.round(Math.abs(clockAheadMs) / 60_000)
  return `: it is ${minutes} min ${clockAheadMs > 0 ? 'behind' : 'ahead of'} that of the store`
}
