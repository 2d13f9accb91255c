import { loginFailure, type CameraLogin } from './camera-login.js'
import type { Failure } from './failure-reason.js'
import { headersIn, type HttpHead } from './http-head.js'

/** Of one request: without a login, with a nonce that is old by then, with a new one, spelt otherwise. */
const mostTries = 4

/** What a login is given for, and how it is asked for over HTTP. */
export type LoginRounds<T> = Readonly<{
  method: string
  /** As it is sent. */
  path: string
  /** @param authorization - value of the header; undefined where nothing is to be said. */
  ask(authorization: string | undefined): Promise<T>
  /** Undefined where nothing was answered: that ends it. */
  headOf(answer: T): HttpHead | undefined
  /** The answer is not wanted: another one follows. */
  pass(answer: T): Promise<void> | void
}>

/**
 * Asks over HTTP until the camera has taken the login, or will not.
 *
 * @returns the last answer, with why it is not the one that was wanted, where the camera refused.
 */
export async function askLoggedIn<T>(
  login: CameraLogin | undefined,
  { method, path, ask, headOf, pass }: LoginRounds<T>,
): Promise<Readonly<{ answer: T; refused?: Failure }>> {
  for (let tries = 1; ; tries += 1) {
    const authorization = login?.answer(method, path)
    const answer = await ask(authorization)
    const head = headOf(answer)
    if (head === undefined) return { answer }
    if (!/^\S+ 401\b/.test(head.first)) {
      if (authorization !== undefined) login?.informed(headersIn(head, 'authentication-info'))
      return { answer }
    }
    const challenges = headersIn(head, 'www-authenticate')
    const isWorthIt = login?.challenged(challenges, authorization !== undefined) === true
    if (!isWorthIt || tries === mostTries) return { answer, refused: loginFailure(login, challenges) }
    await pass(answer)
  }
}
