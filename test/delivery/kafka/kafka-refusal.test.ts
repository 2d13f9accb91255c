import { describe, expect, it } from 'vitest'
import { kafkaFailure } from '../../../src/delivery/kafka/kafka-errors.js'
import { RecordsRefusedError } from '../../../src/delivery/refusal.js'

const refusalOf = (error: unknown) => kafkaFailure(error).refusal

/** An error as kafkajs gives it: the broker's inside the client's. */
function wrapped(inner: Error): Error {
  return Object.assign(new Error('outer', { cause: inner }), { name: 'KafkaJSNonRetriableError' })
}

const ofBroker = (type: string) =>
  wrapped(Object.assign(new Error(`why ${type}`), { name: 'KafkaJSProtocolError', type }))

describe('what a failed send says of its records', () => {
  it.each([
    ['MESSAGE_TOO_LARGE', true],
    ['RECORD_LIST_TOO_LARGE', true],
    ['INVALID_RECORD', true],
    ['INVALID_TIMESTAMP', false],
    ['CORRUPT_MESSAGE', false],
    ['UNKNOWN', false],
  ])('%s is a word on the records, for certain: %s', (reason, certain) => {
    expect(refusalOf(ofBroker(reason))).toEqual({ reason, certain, detail: `why ${reason}` })
  })

  it.each([
    'NOT_LEADER_FOR_PARTITION',
    'REQUEST_TIMED_OUT',
    'OUT_OF_ORDER_SEQUENCE_NUMBER',
    'TOPIC_AUTHORIZATION_FAILED',
    'KAFKA_STORAGE_ERROR',
    'NOT_ENOUGH_REPLICAS',
  ])('%s is the broker', (type) => {
    expect(refusalOf(ofBroker(type))).toBeUndefined()
  })

  it.each([
    new TypeError('no string'),
    new RangeError('too large'),
    new Error('Invalid message without value'),
  ])('%s of the client library is one too, of this record or of all', (error) => {
    expect(refusalOf(wrapped(error))).toEqual({
      reason: 'CLIENT_ERROR',
      detail: error.message,
      certain: false,
    })
  })

  it('takes anything else for the broker or the way to it', () => {
    expect(refusalOf('?')).toBeUndefined()
    expect(refusalOf(wrapped(new Error('connect ECONNREFUSED')))).toBeUndefined()
  })
})

describe('what all records are refused with', () => {
  const reasonOf = (reason: string) =>
    kafkaFailure(new RecordsRefusedError({ reason, detail: 'out of range', certain: false })).reason

  it('is the clock where it is the clock, with what to do', () => {
    expect(reasonOf('INVALID_TIMESTAMP')).toMatch(/^the clock of this machine differs from the broker's.*NTP/)
    expect(reasonOf('CORRUPT_MESSAGE')).toBe(
      'the broker takes no record now (CORRUPT_MESSAGE: out of range); records wait',
    )
  })
})
