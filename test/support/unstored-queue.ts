import { OutboxQueue, type UnstoredLimits } from '../../src/delivery/outbox-queue.js'

/** A queue whose records are in memory alone. */
export function unstoredQueue(
  limits: UnstoredLimits = { maxRecords: 10_000, maxBytes: 32 * 1024 ** 2 },
): OutboxQueue {
  return new OutboxQueue('test', { forSink: async () => [], settle: () => undefined }, limits)
}
