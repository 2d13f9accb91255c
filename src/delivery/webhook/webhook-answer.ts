import type { Refusal } from '../refusal.js'

/** What an answer says of the records that were posted. */
export type AnswerMeaning =
  | Readonly<{ kind: 'taken' }>
  /** They will never be taken. */
  | Readonly<{ kind: 'refused'; refusal: Refusal }>
  | Readonly<{ kind: 'later'; reason: string; retryAfterMs: number | undefined }>

/** Longest that a far side may ask to be left alone. */
export const maxRetryAfterMs = 5 * 60_000

/**
 * Answers that are a word on what was sent. Any other of 4xx is one on the settings of either side, such as a token that has run out: the
 * records are as good as before, and wait until that is mended.
 */
const ofTheRecord: ReadonlySet<number> = new Set([400, 409, 413, 415, 422])

/** Which setting an answer is about, where it says so. */
const settingOf: Readonly<Record<number, string>> = {
  401: 'headers: a login is missing, or not taken any more',
  403: 'headers: the login may not do this',
  404: 'url: there is nothing',
  405: 'url: nothing is taken by POST there',
  407: 'url: a proxy asks for a login',
  410: 'url: there is nothing any more',
}

/**
 * @param retryAfter - the header, as it came.
 * @param told - beginning of the body, for people; without secrets.
 * @param atMs - wall time.
 */
export function meaningOf(
  status: number,
  retryAfter: string | undefined,
  told: string,
  atMs: number,
): AnswerMeaning {
  if (status >= 200 && status < 300) return { kind: 'taken' }
  const words = told === '' ? '' : `: ${told}`
  if (ofTheRecord.has(status))
    return {
      kind: 'refused',
      refusal: { reason: `HTTP_${status}`, detail: `answers ${status}${words}`, certain: true },
    }
  const retryAfterMs = retryAfterOf(retryAfter, atMs)
  const asks =
    retryAfterMs === undefined ? '' : `, asks to be left alone for ${Math.ceil(retryAfterMs / 1000)} s`
  const redirect = status >= 300 && status < 400 ? ', and redirects are not followed' : ''
  const setting = settingOf[status]
  const about = setting === undefined ? '' : ` (${setting})`
  return { kind: 'later', reason: `answers ${status}${about}${redirect}${asks}${words}`, retryAfterMs }
}

/** Seconds, or a date of HTTP; undefined for what is neither. A bound goes over what it says. */
export function retryAfterOf(header: string | undefined, atMs: number): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - atMs
  // A date is full of words; `Date.parse` takes "-5" for one.
  if (Number.isNaN(ms) || !/^\d{1,10}$|[a-z]{3}/i.test(text)) return undefined
  return Math.min(Math.max(0, ms), maxRetryAfterMs)
}
