import { type Admin, logLevel } from 'kafkajs'
import { atMost } from '../../lifecycle/delay.js'
import type { KafkaClients } from './kafka-client.js'
import { PartitionLeaders } from './partition-leaders.js'
import { SocketGuard } from './socket-guard.js'

const answerDeadlineMs = 2_000
/** Who asks every second tries nothing twice, and the log has the outcome. */
const once = { retry: { retries: 0 }, requestTimeout: answerDeadlineMs, logLevel: logLevel.NOTHING }

/**
 * The broker of the settings that answers before the others. The client library asks one after the other and keeps to the first that lets it
 * connect, also to one whose process stands still.
 */
export class AnsweringBroker {
  private constructor(
    /** As in the settings. */
    readonly address: string,
    readonly admin: Admin,
    readonly guard: SocketGuard,
  ) {}

  /** Asks all of them at once. @returns undefined when none answers within 2 s. */
  static async find(clients: KafkaClients): Promise<AnsweringBroker | undefined> {
    const guards: SocketGuard[] = []
    const asked = clients.config.brokers.map(async (address) => {
      const guard = new SocketGuard()
      guards.push(guard)
      const admin = (await clients.create(guard, { brokers: [address], ...once })).admin()
      await admin.connect()
      return new AnsweringBroker(address, admin, guard)
    })
    const first = await atMost(answerDeadlineMs, Promise.any(asked)).catch(() => undefined)
    for (const guard of guards) if (guard !== first?.guard) guard.close()
    return first
  }

  /** Who leads the partitions of topics now, as this broker has heard. @throws what the client library throws, and when it takes over 2 s */
  async leaders(topics: readonly string[]): Promise<PartitionLeaders> {
    const leaders = new PartitionLeaders()
    const answer = await atMost(answerDeadlineMs, this.admin.fetchTopicMetadata({ topics: [...topics] }))
    if (answer === undefined) throw new Error(`${this.address} does not answer`)
    for (const { name, partitions } of answer.topics) leaders.learn(name, partitions)
    return leaders
  }

  close(): void {
    this.guard.close()
  }
}
