import { logLevel, type LogEntry } from 'kafkajs'
import { expect, it } from 'vitest'
import { kafkaLog } from '../../../src/delivery/kafka/kafka-log.js'
import { recordingLog } from '../../support/silent-log.js'

const entry = (message: string, level = logLevel.ERROR): LogEntry => ({
  namespace: 'Connection',
  level,
  label: 'ERROR',
  log: { timestamp: '', logger: 'kafkajs', message, broker: '127.0.0.1:9092', stack: 'Error: ...' },
})

it('writes the client library a few warnings per window, without stack and password', () => {
  const { log, lines } = recordingLog()
  const write = kafkaLog(log, ['s3cret'])(logLevel.WARN)
  write(entry('refused for s3cret'))
  write(entry('chatter', logLevel.INFO))
  write(entry('Limiting retries for the idempotent producer may invalidate EoS guarantees', logLevel.WARN))
  write(entry('Connection error: kafka client ended'))
  for (let i = 0; i < 100; i += 1) write(entry(`attempt ${i}`))
  expect(lines).toHaveLength(5)
  expect(lines[0]).toMatchObject({ msg: 'kafka client', broker: '127.0.0.1:9092', detail: 'refused for ***' })
  expect(JSON.stringify(lines)).not.toMatch(/s3cret|stack|Limiting|chatter|client ended/)
})
