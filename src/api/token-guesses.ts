import { RateLimiterMemory } from 'rate-limiter-flexible'
import { carriedToken, tokenMatches, type AccessHeaders, type AccessSettings } from './access.js'
import { RateLimitedError } from './errors.js'

const windowSeconds = 60

/**
 * Counts wrong tokens of an address, wherever they are tried: every path that needs the token tells whether it is right, those that are
 * asked so often that requests to them have no limit as well.
 */
export class TokenGuesses {
  readonly #wrong: RateLimiterMemory | undefined

  /** @param perMinute - most of one address; 0 sets no limit. */
  constructor(readonly perMinute: number) {
    this.#wrong =
      perMinute === 0 ? undefined : new RateLimiterMemory({ points: perMinute, duration: windowSeconds })
  }

  /**
   * To be asked before anybody looks at the token. Who carries none guesses nothing.
   *
   * @throws RateLimitedError for an address that has guessed too often, right or wrong this time
   */
  async look(
    address: string,
    headers: AccessHeaders,
    settings: Pick<AccessSettings, 'token'>,
  ): Promise<void> {
    if (this.#wrong === undefined || settings.token === undefined) return
    const given = carriedToken(headers)
    if (given === undefined) return
    const so = await this.#wrong.get(address)
    if (so !== null && so.consumedPoints >= this.perMinute)
      throw new RateLimitedError(this.perMinute, Math.ceil(so.msBeforeNext / 1_000))
    if (!tokenMatches(settings.token, given)) await this.#wrong.penalty(address)
  }
}
