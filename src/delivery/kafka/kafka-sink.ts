import type { KafkaConfig } from '../../config/outputs.js'
import type { Log } from '../../lifecycle/log.js'
import { defaultDelivery } from '../delivery.js'
import { DeliverySink, type DeliverySinkMetrics } from '../delivery-sink.js'
import { RecordFilter } from '../record-filter.js'
import type { RecordQueue } from '../record-queue.js'
import { KafkaLinks } from './kafka-link.js'

/**
 * Brokers take 9 s to find out that one of them is gone (`broker.session.timeout.ms`), and until then none acknowledges what that one has
 * copies of. Who gives up before sends all of it again, with another producer id, and has it twice in each partition.
 */
const patience = { sendDeadlineMs: 15_000, lateAfterMs: 6_000 } as const

const words = {
  up: 'kafka up',
  down: 'kafka down, retrying',
  refused: 'broker refuses records for good',
} as const

/** A sink to the brokers of `sinks.kafka`: records with camera as key, the id as header `ce_id`. */
export function createKafkaSink(
  config: KafkaConfig,
  queue: RecordQueue,
  metrics: DeliverySinkMetrics,
  log: Log,
): DeliverySink {
  const { lingerMs, maxBatchRecords } = config
  const settings = { ...defaultDelivery, ...patience, lingerMs, maxBatchRecords }
  const links = new KafkaLinks(config, log)
  const filter = new RecordFilter(config.filter)
  return new DeliverySink({ name: 'kafka', queue, links, settings, filter, words }, metrics, log)
}
