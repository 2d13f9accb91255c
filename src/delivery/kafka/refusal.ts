import { GantryError } from '../../errors.js'
import { causes, protocolTypes } from './kafka-errors.js'

/** What a failed send says against its records, as opposed to the broker or the way to it. */
export type Refusal = Readonly<{
  /** Kafka's name of the error, or `CLIENT_ERROR`: one of few, as it labels a metric. */
  reason: string
  /** In the words of whoever refused. */
  detail: string
  /**
   * The record itself is at fault. Otherwise it may as well be everything that is sent now, such as a wrong clock: then the record is
   * at fault only if the broker takes others of the same partition.
   */
  certain: boolean
}>

const ofTheRecord = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD'])
const perhapsOfTheRecord = new Set(['INVALID_TIMESTAMP', 'CORRUPT_MESSAGE', 'UNKNOWN'])
/** What the client library throws when it cannot put a record into bytes. */
const ofEncoding = new Set(['TypeError', 'RangeError', 'SyntaxError', 'ReferenceError'])

/** @returns undefined when the error is no word on the records: they are sent again. */
export function refusalOf(error: unknown): Refusal | undefined {
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

/** The broker refuses every record of a partition, so that none of them is at fault: they wait. */
export class RecordsRefusedError extends GantryError {
  readonly code = 'GANTRY_SINK_UNAVAILABLE'
  readonly hint: string
  override readonly retryable = true
  constructor({ reason, detail }: Refusal) {
    super(
      reason === 'INVALID_TIMESTAMP'
        ? `the clock of this machine differs from the broker's: it refuses records of now (${reason}: ${detail}); records wait`
        : `the broker takes no record now (${reason}: ${detail}); records wait`,
    )
    this.name = 'RecordsRefusedError'
    this.hint =
      reason === 'INVALID_TIMESTAMP'
        ? 'Set both clocks (NTP), or let the topic take the time of the broker: message.timestamp.type=LogAppendTime.'
        : 'Look at the log of the broker and at the settings of the topic; records wait in a bounded queue meanwhile.'
  }
}
