import { GantryError } from '../../errors.js'
import { systemLimit } from '../../lifecycle/system-limit.js'

/** The brokers cannot be reached or do not take records right now. */
export class KafkaUnavailableError extends GantryError {
  readonly code = 'GANTRY_SINK_UNAVAILABLE'
  readonly hint =
    'Check sinks.kafka.brokers and that the brokers run; records wait in a bounded queue meanwhile.'
  override readonly retryable = true
  constructor(reason: string, cause?: unknown) {
    super(`kafka: ${reason}`, { cause })
    this.name = 'KafkaUnavailableError'
  }
}

/** The error and what caused it, outermost first; kafkajs wraps errors of the broker several times. */
export function* causes(error: unknown): Generator<Error> {
  let next: unknown = error
  for (let depth = 0; depth < 8 && next instanceof Error; depth += 1) {
    yield next
    next = 'originalError' in next && next.originalError instanceof Error ? next.originalError : next.cause
  }
}

/** Types of broker errors, as kafkajs names them. */
export function protocolTypes(error: unknown): readonly string[] {
  return [...causes(error)].flatMap((cause) =>
    'type' in cause && typeof cause.type === 'string' ? [cause.type] : [],
  )
}

const noProducerId = new Set([
  'CLUSTER_AUTHORIZATION_FAILED',
  'TRANSACTIONAL_ID_AUTHORIZATION_FAILED',
  'UNSUPPORTED_VERSION',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
])

/** The broker does not give producer ids, or not to us: records can be sent, but not idempotently. */
export function refusesIdempotence(error: unknown): boolean {
  if (protocolTypes(error).some((type) => noProducerId.has(type))) return true
  return [...causes(error)].some(({ name }) => name === 'KafkaJSServerDoesNotSupportApiKey')
}

/** The broker was reached and ended the connection over what it was sent. */
export function closedByBroker(error: unknown): boolean {
  return [...causes(error)].some(
    (cause) =>
      cause.name === 'KafkaJSConnectionClosedError' || ('code' in cause && cause.code === 'ECONNRESET'),
  )
}

/** A limit of the system by its true name, or the message of the innermost cause that says something. */
export function reasonOf(error: unknown): string {
  const limit = [...causes(error)].map(systemLimit).find((found) => found !== undefined)
  if (limit !== undefined) return limit.reason
  const messages = [...causes(error)].map(({ message }) => message).filter((message) => message !== '')
  return messages.at(-1) ?? String(error)
}
