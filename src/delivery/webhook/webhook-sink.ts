import { DeliverySink, type DeliverySinkMetrics } from '../delivery-sink.js'
import { defaultDelivery } from '../delivery.js'
import { RecordFilter } from '../record-filter.js'
import type { RecordQueue } from '../record-queue.js'
import { WebhookLinks, type WebhookParts } from './webhook-link.js'

const backoff = { baseMs: 500, capMs: 30_000 }

const words = {
  up: 'webhook up',
  down: 'webhook down, retrying',
  refused: 'webhook refuses records for good',
} as const

/** A sink that posts records to the URL of a section of `sinks.webhook`. */
export function createWebhookSink(
  parts: WebhookParts,
  queue: RecordQueue,
  metrics: DeliverySinkMetrics,
): DeliverySink {
  const { name, config } = parts.webhook
  const { timeoutMs, maxBatchRecords, lingerMs, filter } = config
  const settings = {
    ...defaultDelivery,
    backoff,
    sendDeadlineMs: timeoutMs,
    maxSendDeadlineMs: timeoutMs,
    maxBatchRecords,
    lingerMs,
  }
  return new DeliverySink(
    { name, queue, links: new WebhookLinks(parts), settings, filter: new RecordFilter(filter), words },
    metrics,
    parts.log,
  )
}
