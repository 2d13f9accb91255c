import type { ModelConfig } from '../repository/model-config.js'
import { instanceClaims } from '../runtime/rate-limit/claims.js'

/** What of a configuration has no effect with the settings of this server, in sentences. */
export function loadWarnings(
  config: ModelConfig,
  { keepsAnswers, limitsRates }: Readonly<{ keepsAnswers: boolean; limitsRates: boolean }>,
): readonly string[] {
  const uncached = !keepsAnswers
    ? 'models.cache keeps nothing'
    : config.sequence_batching === undefined
      ? undefined
      : 'answers of sequences are not kept'
  return [
    ...(config.response_cache?.enable === true && uncached !== undefined
      ? [`response_cache has no effect: ${uncached}`]
      : []),
    ...(!limitsRates && instanceClaims(config).length > 0
      ? ['rate_limiter has no effect: modelServer.rateLimit.mode is off']
      : []),
  ]
}
