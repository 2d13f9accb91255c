import type { ZodError } from 'zod'
import { complaintsOf } from '../../config/schema-problem.js'
import { formatPath } from '../../config/setting-path.js'
import {
  clientMessageSchema,
  pingSchema,
  subscribeSchema,
  type ClientMessage,
} from '../../messages/stream-protocol.js'
import { GantryError } from '../../errors.js'

/** A client sent something that is no message of `gantry.v1`. */
export class StreamMessageError extends GantryError {
  readonly code = 'GANTRY_WS_MESSAGE'
  readonly hint =
    'Send JSON text such as {"type":"subscribe","cameras":["*"]}; the messages are in schemas/asyncapi.json.'
  constructor(message: string) {
    super(message)
    this.name = 'StreamMessageError'
  }
}

/** A `resumeAfter` that this service cannot have given. */
export class StreamCursorError extends GantryError {
  readonly code = 'GANTRY_CURSOR'
  readonly hint = 'Use the cursor of a message you received, or leave resumeAfter out.'
  constructor(cursor: string) {
    super(`cursor "${cursor}" lies in the future of the stream`)
    this.name = 'StreamCursorError'
  }
}

/** A client changes its subscription, or asks for a sign of life, faster than anybody needs to. */
export class StreamRateError extends GantryError {
  readonly code = 'GANTRY_RATE_LIMITED'
  override readonly retryable = true
  readonly hint: string
  constructor(type: ClientMessage['type'], limit: number, windowMs: number) {
    super(`too many ${type} messages`)
    this.name = 'StreamRateError'
    this.hint = `Send at most ${limit} ${type} messages within ${windowMs / 1000} s.`
  }
}

/** @throws StreamMessageError naming everything that is wrong. */
export function parseClientMessage(text: string): ClientMessage {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new StreamMessageError('the message is not JSON')
  }
  const parsed = clientMessageSchema.safeParse(body)
  if (!parsed.success) throw new StreamMessageError(problemsOf(parsed.error, body).join('; '))
  return parsed.data
}

function problemsOf({ issues }: ZodError, body: unknown): string[] {
  const isPing = pingSchema.pick({ type: true }).loose().safeParse(body).success
  return issues.flatMap((issue) => {
    if (issue.code === 'invalid_union') return ['type: must be subscribe or ping']
    return complaintsOf(issue, isPing ? pingSchema : subscribeSchema, body).map(({ path, message }) =>
      path.length === 0 ? 'the message must be a JSON object' : `${formatPath(path)}: ${message}`,
    )
  })
}
