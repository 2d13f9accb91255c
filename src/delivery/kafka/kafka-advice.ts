import type { KafkaConnection } from '../../config/outputs.js'
import { type ConnectionAdvice, tlsFailure } from '../../lifecycle/tls-failure.js'
import { causes, protocolTypes } from './kafka-errors.js'
import { KafkaTokenError } from './token-provider.js'

/**
 * Why brokers do not take our connection or login, in words that name the setting; undefined for any other reason.
 *
 * @param error - of the client library
 * @param ofSocket - what ended the connection before that, if it failed by itself
 * @param setting - where the section of the brokers stands
 */
export function connectionAdvice(
  error: unknown,
  ofSocket: Error | undefined,
  config: KafkaConnection,
  setting = 'sinks.kafka',
): ConnectionAdvice | undefined {
  const [ssl, sasl] = [`${setting}.ssl`, `${setting}.sasl`]
  const all = [...causes(error)]
  const ofToken = all.find((cause) => cause instanceof KafkaTokenError)
  if (ofToken !== undefined) return { reason: withoutSubject(ofToken.message), fix: ofToken.hint }
  const ofTls = tlsFailure(ofSocket, ssl, `${ssl}: false`)
  if (ofTls !== undefined) return ofTls
  const refused = all.find(({ name }) => name === 'KafkaJSSASLAuthenticationError')
  if (refused !== undefined) return refusedLogin(refused.message, config, sasl)
  if (protocolTypes(error).includes('UNSUPPORTED_SASL_MECHANISM'))
    return refusedLogin('mechanism is not supported', config, sasl)
  if (protocolTypes(error).includes('ILLEGAL_SASL_STATE'))
    return {
      reason: 'the broker asks for no login at that port',
      fix: `leave ${sasl} out, or name the port of logins`,
    }
  if (!all.some(({ name }) => name === 'KafkaJSConnectionClosedError')) return undefined
  // Brokers answer a token that they do not take with an error inside of a success, which the client library passes over.
  if (config.sasl?.mechanism === 'oauthbearer')
    return refusedLogin('it ends the connection behind it', config, sasl)
  const perhaps = [
    ...(config.ssl === false ? [`TLS (${ssl})`] : []),
    ...(config.sasl === undefined ? [`a login (${sasl})`] : []),
  ]
  if (perhaps.length === 0) return undefined
  return {
    reason: 'the broker ends the connection without an answer',
    fix: `it may ask for ${perhaps.join(' or ')} at that port`,
  }
}

function refusedLogin(message: string, config: KafkaConnection, sasl: string): ConnectionAdvice {
  const reason = `the broker refuses the login: ${message.replace(/^(SASL [\w ]+ authentication failed: )+/i, '')}`
  if (/mechanism is not supported|UNSUPPORTED_SASL/i.test(message))
    return { reason, fix: `set ${sasl}.mechanism to one that the broker offers` }
  return config.sasl?.mechanism === 'oauthbearer'
    ? {
        reason: `${reason} (token)`,
        fix: `look what the broker says of the token in its log, and at clientId and scope of ${sasl}`,
      }
    : { reason, fix: `correct username and password of ${sasl}, and its mechanism` }
}

function withoutSubject(message: string): string {
  return message.replace(/^kafka: /, '')
}
