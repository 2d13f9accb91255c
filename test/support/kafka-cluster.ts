import { type Admin, Kafka, logLevel, type PartitionMetadata } from 'kafkajs'
import { freePort } from './free-port.js'
import { KafkaBroker, newClusterId } from './kafka.js'
import { until } from './until.js'

/** How long brokers take to find out that one of them is gone; 9 s where nothing is set. Much less, and slow ones are taken for dead. */
export const brokerSessionMs = 6_000

/** Several real brokers in KRaft mode, each with a copy of every partition. A record is acknowledged once two of them have it. */
export class KafkaCluster {
  private constructor(
    /** Broker 1 is the first. */
    readonly brokers: readonly KafkaBroker[],
  ) {}

  static async start(size = 3): Promise<KafkaCluster> {
    const clusterId = newClusterId()
    const controllerPorts: number[] = []
    while (controllerPorts.length < size) controllerPorts.push(await freePort())
    const voters = controllerPorts.map((port, index) => `${index + 1}@127.0.0.1:${port}`).join(',')
    const properties = {
      'default.replication.factor': String(size),
      'min.insync.replicas': String(Math.ceil((size + 1) / 2)),
      'offsets.topic.replication.factor': String(size),
      'broker.session.timeout.ms': String(brokerSessionMs),
      'broker.heartbeat.interval.ms': '500',
      // How long the others wait for a controller that stands still; 30 s where nothing is set, in which they acknowledge nothing.
      'controller.socket.timeout.ms': '2000',
      // Partitions go back to whom they were given first.
      'auto.leader.rebalance.enable': 'true',
      'leader.imbalance.check.interval.seconds': '3',
      'leader.imbalance.per.broker.percentage': '0',
    }
    const brokers: KafkaBroker[] = []
    const cluster = new KafkaCluster(brokers)
    try {
      for (const [index, controllerPort] of controllerPorts.entries())
        brokers.push(
          await KafkaBroker.prepare({
            properties,
            node: { id: index + 1, clusterId, controllerPort, voters },
          }),
        )
      for (const broker of brokers) broker.launch()
      for (const broker of brokers) await broker.answers()
    } catch (error) {
      await cluster.stop()
      throw error
    }
    return cluster
  }

  get addresses(): string[] {
    return this.brokers.map(({ address }) => address)
  }

  /** Number of the broker. */
  broker(id: number): KafkaBroker {
    const broker = this.brokers[id - 1]
    if (broker === undefined) throw new Error(`no broker ${id}`)
    return broker
  }

  /** Who leads each partition of a topic, as those say who answer. @param not - brokers that are not asked. */
  async leaders(topic: string, not: readonly number[] = []): Promise<ReadonlyMap<number, number>> {
    const partitions = await this.#partitions(topic, not)
    return new Map(partitions.map(({ partitionId, leader }) => [partitionId, leader]))
  }

  #partitions(topic: string, not: readonly number[]): Promise<readonly PartitionMetadata[]> {
    return this.#ask(not, async (admin) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return topics.flatMap(({ partitions }) => partitions)
    })
  }

  /** Partitions whose leader is to be another broker, and which: the cluster sees to it within seconds, while all brokers are well. */
  async prefer(topic: string, wanted: ReadonlyMap<number, number>): Promise<void> {
    const ids = this.brokers.map((_, index) => index + 1)
    const partitionAssignment = [...wanted].map(([partition, leader]) => ({
      partition,
      replicas: [leader, ...ids.filter((id) => id !== leader)],
    }))
    await this.#ask([], (admin) =>
      admin.alterPartitionReassignments({ topics: [{ topic, partitionAssignment }] }),
    )
  }

  async #ask<T>(not: readonly number[], work: (admin: Admin) => Promise<T>): Promise<T> {
    const brokers = this.brokers.filter((_, index) => !not.includes(index + 1)).map(({ address }) => address)
    const settings = { connectionTimeout: 2_000, requestTimeout: 5_000, logLevel: logLevel.NOTHING }
    const admin = new Kafka({ brokers, ...settings, retry: { retries: 5 } }).admin()
    await admin.connect()
    try {
      return await work(admin)
    } finally {
      await admin.disconnect()
    }
  }

  /** Waits until a broker leads nothing of a topic any more. */
  async leadsNothing(id: number, topic: string): Promise<void> {
    await until(
      `broker ${id} leads nothing`,
      async () => {
        const leaders = await this.leaders(topic, [id]).catch(() => undefined)
        return leaders !== undefined && ![...leaders.values()].includes(id)
      },
      60_000,
      200,
    )
  }

  /** Waits until each broker leads a part of the topic, and has a copy of all of it. */
  async allLead(topic: string): Promise<ReadonlyMap<number, number>> {
    let partitions: readonly PartitionMetadata[] = []
    const { length } = this.brokers
    await until(
      'every broker leads',
      async () => {
        partitions = await this.#partitions(topic, []).catch(() => [])
        const leaders = new Set(partitions.map(({ leader }) => leader))
        return leaders.size === length && partitions.every(({ isr }) => isr.length === length)
      },
      90_000,
      200,
    )
    return new Map(partitions.map(({ partitionId, leader }) => [partitionId, leader]))
  }

  async stop(): Promise<void> {
    await Promise.all(this.brokers.map((broker) => broker.stop()))
  }
}
