import { kafkaSchema, unstoredLimits, type KafkaConfig } from '../../../src/config/outputs.js'
import { detectionsRecordId, eventTypes } from '../../../src/messages/cloud-event.js'
import type { DetectionsMessage } from '../../../src/messages/detections-message.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { createKafkaSink } from '../../../src/delivery/kafka/kafka-sink.js'
import { type OutboxQueue, queuedRecord } from '../../../src/delivery/outbox-queue.js'
import type { RecordStore } from '../../../src/store/record-store.js'
import { nowMs } from '../../../src/lifecycle/clock.js'
import { textOf } from '../../support/detections.js'
import { unstoredQueue } from '../../support/unstored-queue.js'
import { recordingLog } from '../../support/silent-log.js'

let topics = 0

/** A topic no other test uses. */
export function ownTopic(): string {
  topics += 1
  return `test.${process.pid}.${topics}`
}

/** Records that wait in a store. */
export type StoredQueue = Readonly<{ store: RecordStore; queue: OutboxQueue }>

/** A sink and what it logged and counted. @param stored - otherwise its records wait in memory. */
export function kafkaSink(
  address: string,
  topic: string,
  overrides: Partial<KafkaConfig> = {},
  stored?: StoredQueue,
) {
  const config: KafkaConfig = {
    ...kafkaSchema.parse({ brokers: [address], topics: { detections: topic } }),
    ...overrides,
  }
  const metrics = createServiceMetrics()
  const { log, lines } = recordingLog()
  const queue = stored?.queue ?? unstoredQueue(unstoredLimits(config))
  const sink = createKafkaSink(config, queue, metrics, log)
  let position = 0
  return {
    sink,
    lines,
    accept: (message: DetectionsMessage) => {
      const { cameraId, seq, capturedAtMs: timeMs, json: value } = textOf(message)
      const id = detectionsRecordId('e1', 0, message)
      const record = { id, type: eventTypes.detections, cameraId, seq, timeMs, value }
      if (stored === undefined)
        sink.accept(queuedRecord({ ...record, position: (position += 1) }, false, nowMs()))
      else
        stored.store.accept(record, (placed, isStored) =>
          sink.accept(queuedRecord(placed, isStored, nowMs())),
        )
    },
    counted: async (result: string): Promise<number> => {
      const { values } = await metrics.sinkRecords.get()
      return values.find(({ labels }) => labels['result'] === result)?.value ?? 0
    },
    rejected: async (): Promise<Record<string, number>> => {
      const { values } = await metrics.sinkRejected.get()
      return Object.fromEntries(values.map(({ labels, value }) => [String(labels['reason']), value]))
    },
    deadLetters: async (): Promise<Record<string, number>> => {
      const { values } = await metrics.sinkDeadLetters.get()
      return Object.fromEntries(values.map(({ labels, value }) => [String(labels['result']), value]))
    },
    up: async (): Promise<number | undefined> => {
      return (await metrics.sinkUp.get()).values[0]?.value
    },
  }
}
