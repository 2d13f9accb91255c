import { kafkaSchema, type KafkaConfig } from '../../../src/config/outputs.js'
import { detectionsRecordId } from '../../../src/messages/cloud-event.js'
import type { DetectionsMessage } from '../../../src/messages/detections-message.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { createKafkaSink } from '../../../src/delivery/kafka/kafka-sink.js'
import { MemoryQueue } from '../../../src/delivery/memory-queue.js'
import { textOf } from '../../support/detections.js'
import { recordingLog } from '../../support/silent-log.js'

let topics = 0

/** A topic no other test uses. */
export function ownTopic(): string {
  topics += 1
  return `test.${process.pid}.${topics}`
}

/** A sink and what it logged and counted. */
export function kafkaSink(address: string, topic: string, overrides: Partial<KafkaConfig> = {}) {
  const config: KafkaConfig = {
    ...kafkaSchema.parse({ brokers: [address], topics: { detections: topic } }),
    ...overrides,
  }
  const metrics = createServiceMetrics()
  const { log, lines } = recordingLog()
  const { maxQueuedRecords, maxQueuedBytes } = config
  const queue = new MemoryQueue({ maxRecords: maxQueuedRecords, maxBytes: maxQueuedBytes })
  const sink = createKafkaSink(config, queue, metrics, log)
  return {
    sink,
    lines,
    accept: (message: DetectionsMessage) =>
      sink.accept(detectionsRecordId('e1', 0, message), textOf(message)),
    counted: async (result: string): Promise<number> => {
      const { values } = await metrics.sinkRecords.get()
      return values.find(({ labels }) => labels['result'] === result)?.value ?? 0
    },
    rejected: async (): Promise<Record<string, number>> => {
      const { values } = await metrics.sinkRejected.get()
      return Object.fromEntries(values.map(({ labels, value }) => [String(labels['reason']), value]))
    },
    up: async (): Promise<number | undefined> => {
      return (await metrics.sinkUp.get()).values[0]?.value
    },
  }
}
