import type { Admin } from 'kafkajs'
import { until } from './until.js'

/** Resolves once each partition of a topic that was made has a leader: the client's own `waitForLeaders` asks once, and fails. */
export async function leadersOf(admin: Admin, topic: string): Promise<void> {
  await until(`leaders of ${topic}`, () =>
    admin.fetchTopicMetadata({ topics: [topic] }).then(
      ({ topics }) => (topics[0]?.partitions.length ?? 0) > 0,
      () => false,
    ),
  )
}
