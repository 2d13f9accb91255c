import { describe, expect, it } from 'vitest'
import { redisFailure } from '../../../src/cache/redis/redis-failure.js'
import { reasonOf, refusesIdempotence } from '../../../src/delivery/kafka/kafka-errors.js'

/** An error as kafkajs gives it: the broker's inside the client's. */
function wrapped(name: string, type: string | undefined, message = type ?? name): Error {
  const inner = Object.assign(new Error(message), { name, ...(type === undefined ? {} : { type }) })
  return Object.assign(new Error('outer', { cause: inner }), { name: 'KafkaJSNonRetriableError' })
}

describe('refusesIdempotence', () => {
  it.each([
    ['a broker that forbids it', wrapped('KafkaJSProtocolError', 'CLUSTER_AUTHORIZATION_FAILED'), true],
    ['a broker that does not know it', wrapped('KafkaJSServerDoesNotSupportApiKey', undefined), true],
    ['a broker that is away', wrapped('KafkaJSConnectionError', undefined), false],
    ['a topic that is forbidden', wrapped('KafkaJSProtocolError', 'TOPIC_AUTHORIZATION_FAILED'), false],
  ])('%s', (_, error, refuses) => {
    expect(refusesIdempotence(error)).toBe(refuses)
  })
})

it('reasonOf gives the innermost message', () => {
  expect(reasonOf(wrapped('KafkaJSConnectionError', undefined, 'connect ECONNREFUSED'))).toBe(
    'connect ECONNREFUSED',
  )
  expect(reasonOf('gone')).toBe('gone')
})

const withoutDescriptor = Object.assign(new Error('connect EMFILE 127.0.0.1:9092 - Local'), {
  code: 'EMFILE',
})

it('R23: a broker that no descriptor is left for is not called unreachable', () => {
  const wrapped = Object.assign(new Error('Connection error'), { originalError: withoutDescriptor })
  expect(reasonOf(wrapped)).toMatch(/^no file descriptor is left for this process/)
  expect(redisFailure(withoutDescriptor)).toMatchObject({
    kind: 'silent',
    reason: expect.stringMatching(/^no file descriptor is left/) as string,
  })
  expect(reasonOf(new Error('connect ECONNREFUSED'))).toBe('connect ECONNREFUSED')
})
