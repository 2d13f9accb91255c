/** Codes of this package; every other code is one of the service (docs/errors.md). */
export type ClientErrorCode =
  /** An option is wrong. */
  | 'GANTRY_CLIENT_OPTION'
  /** Nobody answers, or the answer did not come in time. */
  | 'GANTRY_CLIENT_UNREACHABLE'
  /** Somebody answers, and it is no Gantry. */
  | 'GANTRY_CLIENT_ADDRESS'
  /** The service closed the connection and said why. */
  | 'GANTRY_CLIENT_CLOSED'

type Facts = Readonly<{
  /** Of the HTTP answer, where there is one. */
  status?: number
  /** Whether it may go away by itself. A stream tries again then. */
  retryable?: boolean
  /** How long the service asks to be left alone, in ms. */
  retryAfterMs?: number
  cause?: unknown
}>

/** What went wrong, with what to do about it. */
export class GantryClientError extends Error {
  override readonly name = 'GantryClientError'
  readonly status: number | undefined
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined

  /** @param code - a {@link ClientErrorCode}, or a code of the service; later versions of it may know more. */
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string,
    { status, retryable = false, retryAfterMs, cause }: Facts = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = status
    this.retryable = retryable
    this.retryAfterMs = retryAfterMs
  }
}

export function optionError(message: string, hint: string): GantryClientError {
  return new GantryClientError('GANTRY_CLIENT_OPTION', message, hint)
}

export function unreachable(url: string, cause: unknown): GantryClientError {
  const why = reasonOf(cause)
  return new GantryClientError(
    'GANTRY_CLIENT_UNREACHABLE',
    `${url} does not answer${why === '' ? '' : `: ${why}`}`,
    'Check that the service runs and that the address is right.',
    { retryable: true, cause },
  )
}

/** An answer that is not the one that was asked for. */
export type HttpAnswer = Readonly<{ status: number; retryAfter: string | null | undefined; body: string }>

/** What an answer means: what the service says, or that somebody else answers. */
export function refusal(url: string, { status, retryAfter, body }: HttpAnswer): GantryClientError {
  const facts = { status, retryable: isPassing(status), ...waitOf(retryAfter) }
  const problem = problemOf(body)
  if (problem !== undefined) return new GantryClientError(problem.code, problem.detail, problem.hint, facts)
  return new GantryClientError(
    'GANTRY_CLIENT_ADDRESS',
    `${url} answers with ${status}, and not as Gantry does`,
    'Check the address (http or https, port, path), and what is in front of the service.',
    facts,
  )
}

/** Whether a status may be another one soon, though nobody changes anything here. */
function isPassing(status: number): boolean {
  return status >= 500 || [408, 425, 429].includes(status)
}

function waitOf(retryAfter: string | null | undefined): { retryAfterMs?: number } {
  const seconds = Number.parseInt(retryAfter ?? '', 10)
  return Number.isNaN(seconds) ? {} : { retryAfterMs: Math.max(0, seconds) * 1_000 }
}

function problemOf(body: string): { code: string; detail: string; hint: string } | undefined {
  try {
    const problem = JSON.parse(body) as { code?: unknown; detail?: unknown; hint?: unknown } | null
    const { code, detail = '', hint = '' } = problem ?? {}
    return typeof code === 'string' ? { code, detail: String(detail), hint: String(hint) } : undefined
  } catch {
    return undefined
  }
}

/** Names first what lies deepest: `fetch failed` tells nobody anything. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  return reasonOf(cause.cause) || cause.message || ((cause as { code?: string }).code ?? '')
}
