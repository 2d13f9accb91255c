// Prints every result once, one JSON object per line. See README.md.
import { parseArgs } from 'node:util'
import { Kafka, logLevel, type KafkaMessage } from 'kafkajs'
import { RecentIds } from './recent-ids.js'

const { values } = parseArgs({
  options: {
    brokers: { type: 'string', default: '127.0.0.1:9092' },
    topic: { type: 'string', default: 'gantry.detections.v1' },
    group: { type: 'string', default: 'gantry-example' },
    'session-timeout-ms': { type: 'string', default: '30000' },
  },
})

const seen = new RecentIds(100_000)

/** The JSON to print, or undefined for a repetition or a type this consumer does not know. */
function newResult({ headers, value }: KafkaMessage): string | undefined {
  const id = headers?.['ce_id']?.toString()
  const type = headers?.['ce_type']?.toString()
  if (id === undefined || type !== 'gantry.detections.v1' || value === null) return undefined
  return seen.add(id) ? value.toString() : undefined
}

const kafka = new Kafka({ clientId: 'example', brokers: values.brokers.split(','), logLevel: logLevel.ERROR })
const sessionTimeout = Number(values['session-timeout-ms'])
const consumer = kafka.consumer({
  groupId: values.group,
  sessionTimeout,
  heartbeatInterval: sessionTimeout / 10,
})
await consumer.connect()
await consumer.subscribe({ topic: values.topic, fromBeginning: true })
// kafkajs commits an offset after `eachMessage` has returned for it, so nothing is lost when this process ends in between.
await consumer.run({
  eachMessage: async ({ message }) => {
    const result = newResult(message)
    if (result !== undefined) process.stdout.write(`${result}\n`)
  },
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void consumer.disconnect())
