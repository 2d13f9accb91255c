import { GantryError } from '../../errors.js'
import { systemLimit } from '../../lifecycle/system-limit.js'
import type { SendFailure } from '../record-link.js'
import { RecordsRefusedError, type Refusal } from '../refusal.js'

/** The brokers cannot be reached or do not take records right now. */
export class KafkaUnavailableError extends GantryError {
  readonly code = 'GANTRY_SINK_UNAVAILABLE'
  readonly hint =
    'Check sinks.kafka.brokers and that the brokers run; records wait in a bounded queue meanwhile.'
  override readonly retryable = true
  constructor(
    readonly reason: string,
    cause?: unknown,
  ) {
    super(`kafka: ${reason}`, { cause })
    this.name = 'KafkaUnavailableError'
  }
}

/** The topic that a record is for is not there. */
export class TopicAbsentError extends GantryError {
  readonly code = 'GANTRY_SINK_UNAVAILABLE'
  readonly hint = 'Create the topic, or let sinks.kafka.createTopics do so.'
  readonly type = 'TOPIC_ABSENT'
  constructor(topic: string) {
    super(`kafka: there is no topic ${topic}`)
    this.name = 'TopicAbsentError'
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
function closedByBroker(error: unknown): boolean {
  return [...causes(error)].some(
    (cause) =>
      cause.name === 'KafkaJSConnectionClosedError' || ('code' in cause && cause.code === 'ECONNRESET'),
  )
}

/** What was found out already, a limit of the system by its true name, or the message of the innermost cause that says something. */
export function reasonOf(error: unknown): string {
  if (error instanceof KafkaUnavailableError) return error.reason
  const limit = [...causes(error)].map(systemLimit).find((found) => found !== undefined)
  if (limit !== undefined) return limit.reason
  const messages = [...causes(error)].map(({ message }) => message).filter((message) => message !== '')
  return messages.at(-1) ?? String(error)
}

const ofTheRecord = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD', 'TOPIC_ABSENT'])
const perhapsOfTheRecord = new Set(['INVALID_TIMESTAMP', 'CORRUPT_MESSAGE', 'UNKNOWN'])
/** What the client library throws when it cannot put a record into bytes. */
const ofEncoding = new Set(['TypeError', 'RangeError', 'SyntaxError', 'ReferenceError'])

function refusalOf(error: unknown): Refusal | undefined {
  const detail = [...causes(error)].at(-1)?.message ?? ''
  for (const reason of protocolTypes(error)) {
    if (ofTheRecord.has(reason)) return { reason, detail, certain: true }
    if (perhapsOfTheRecord.has(reason)) return { reason, detail, certain: false }
  }
  const isClients = [...causes(error)].some(
    ({ name, message }) => ofEncoding.has(name) || message.startsWith('Invalid message'),
  )
  return isClients ? { reason: 'CLIENT_ERROR', detail, certain: false } : undefined
}

/** What all records are refused with. */
function waiting({ reason, detail }: Refusal): string {
  return reason === 'INVALID_TIMESTAMP'
    ? `the clock of this machine differs from the broker's: it refuses records of now (${reason}: ${detail}); records wait. ` +
        'Set both clocks (NTP), or let the topic take the time of the broker: message.timestamp.type=LogAppendTime'
    : `the broker takes no record now (${reason}: ${detail}); records wait`
}

/** What an error of kafkajs says, or one of the links. */
export function kafkaFailure(error: unknown): SendFailure {
  return {
    reason: error instanceof RecordsRefusedError ? waiting(error.refusal) : reasonOf(error),
    refusal: refusalOf(error),
    closed: closedByBroker(error),
    missed: error instanceof KafkaUnavailableError,
  }
}
