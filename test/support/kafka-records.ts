import { Kafka, logLevel } from 'kafkajs'
import { until } from './until.js'

/** A record as a consumer sees it. */
export type ReceivedRecord = Readonly<{
  partition: number
  offset: string
  timestamp: string
  key: string
  headers: Readonly<Record<string, string>>
  value: unknown
}>

/** Reads a topic from its beginning into an array that grows. */
export async function consumeAll(address: string, topic: string) {
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, retry: { retries: 30 } })
  const consumer = kafka.consumer({ groupId: `test-${topic}-${Date.now()}`, sessionTimeout: 10_000 })
  const records: ReceivedRecord[] = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      const headers = Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)])
      records.push({
        partition,
        offset: message.offset,
        timestamp: message.timestamp,
        key: String(message.key),
        headers: Object.fromEntries(headers) as Record<string, string>,
        value: JSON.parse(String(message.value)) as unknown,
      })
    },
  })
  return {
    records,
    async atLeast(count: number, withinMs = 20_000): Promise<readonly ReceivedRecord[]> {
      await until(`${count} records in ${topic}`, () => records.length >= count, withinMs)
      return records
    },
    stop: () => consumer.disconnect(),
  }
}
