import { type Admin, Kafka, type Producer, type ProducerBatch, type RecordMetadata } from 'kafkajs'
import { afterEach, expect, it, vi } from 'vitest'
import { kafkaSchema } from '../../../src/config/outputs.js'
import { eventTypes } from '../../../src/messages/cloud-event.js'
import { KafkaLinks } from '../../../src/delivery/kafka/kafka-link.js'
import { silentLog } from '../../support/silent-log.js'

afterEach(() => vi.restoreAllMocks())

const record = {
  id: 'cam/e1/1',
  type: eventTypes.detections,
  cameraId: 'cam',
  time: '2026-01-01T00:00:00.000Z',
  value: Buffer.from('{}'),
  acceptedMs: 0,
}

/** Stands in for the client library: a single broker answers alike whether all replicas were asked for or the leader only. */
function recordingKafka(): ProducerBatch[] {
  const batches: ProducerBatch[] = []
  const producer = {
    connect: async () => undefined,
    sendBatch: async (batch: ProducerBatch): Promise<RecordMetadata[]> => {
      batches.push(batch)
      return [{ topicName: 'gantry.detections.v1', partition: 0, errorCode: 0 }]
    },
  }
  const admin = {
    connect: async () => undefined,
    disconnect: async () => undefined,
    fetchTopicMetadata: async () => ({
      topics: [{ name: 'gantry.detections.v1', partitions: [{ partitionId: 0, leader: 1 }] }],
    }),
  }
  vi.spyOn(Kafka.prototype, 'admin').mockReturnValue(admin as unknown as Admin)
  vi.spyOn(Kafka.prototype, 'producer').mockReturnValue(producer as unknown as Producer)
  return batches
}

it.each([true, false])(
  'asks for the acknowledgement of all replicas in sync, idempotent: %s',
  async (idempotent) => {
    const batches = recordingKafka()
    const config = kafkaSchema.parse({ brokers: ['127.0.0.1:1'], createTopics: false, idempotent })
    const link = await new KafkaLinks(config, silentLog()).open(new AbortController().signal, false)
    await link.send([record], 1_000)
    link.close()
    expect(batches).toMatchObject([{ acks: -1, topicMessages: [{ messages: [{ key: 'cam' }] }] }])
  },
)
