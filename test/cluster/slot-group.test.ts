import { Kafka, logLevel } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SlotGroup } from '../../src/cluster/slot-group.js'
import { KafkaBroker, kafkaMissing } from '../support/kafka.js'
import { silentLog } from '../support/silent-log.js'
import { leadersOf } from '../support/topic-leaders.js'
import { until } from '../support/until.js'

const slots = 64
const missing = await kafkaMissing()

/** A member of the group, and what it was told. */
class Node {
  readonly events: { kind: 'gained' | 'lost'; slots: readonly number[] }[] = []
  readonly group: SlotGroup

  constructor(
    readonly name: string,
    brokers: readonly string[],
    topic: string,
    public weight = 10,
  ) {
    this.group = new SlotGroup(
      { groupId: `gantry.${topic}`, topic, slots, node: name },
      {
        open: () =>
          Promise.resolve(
            new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING, requestTimeout: 5_000 }),
          ),
        about: () => ({
          url: `http://${name}`,
          version: '1',
          capacity: { cores: 2, framesPerSecond: this.weight },
          layout: 'l',
          models: 'm',
        }),
        loads: () => Array.from({ length: slots }, () => 1),
        gained: (claims) => this.events.push({ kind: 'gained', slots: [...claims.keys()] }),
        lost: (lost) => this.events.push({ kind: 'lost', slots: lost }),
        log: silentLog(),
      },
    )
  }

  get held(): number {
    return this.group.held.size
  }
}

describe.skipIf(missing !== undefined)('a group of nodes', () => {
  let broker: KafkaBroker
  const nodes: Node[] = []

  beforeAll(async () => {
    broker = await KafkaBroker.start()
  }, 120_000)

  afterAll(async () => {
    await Promise.all(nodes.map(({ group }) => group.stop()))
    await broker.stop()
  })

  async function topicOf(name: string): Promise<string> {
    const admin = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    await admin.createTopics({ waitForLeaders: false, topics: [{ topic: name, numPartitions: slots }] })
    await leadersOf(admin, name)
    await admin.disconnect()
    return name
  }

  function join(name: string, topic: string, weight?: number): Node {
    const node = new Node(name, [broker.address], topic, weight)
    nodes.push(node)
    node.group.start()
    return node
  }

  /** Each of the last nodes has so many, or one or two less or more: for the sake of balance alone no more are moved. */
  const shared = (...sizes: readonly number[]) =>
    until(
      'slots',
      () => {
        const held = sizes.map((_, index) => nodes.at(index - sizes.length)?.held ?? 0)
        const isWhole = held.reduce((sum, each) => sum + each) === slots
        return isWhole && sizes.every((size, index) => Math.abs((held[index] ?? 0) - size) <= 2)
      },
      30_000,
    )

  it('shares slots; those that stay keep their claim while others join and leave', async () => {
    const topic = await topicOf('shares')
    const first = join('a', topic)
    await until('all slots', () => first.held === slots, 30_000)
    const claims = new Map(first.group.held)
    const second = join('b', topic)
    await shared(slots / 2, slots / 2)
    for (const [slot, generation] of first.group.held) expect(generation).toBe(claims.get(slot))
    for (const [slot, generation] of second.group.held)
      expect(generation).toBeGreaterThan(claims.get(slot) ?? Infinity)
    expect(first.events.map(({ kind, slots: { length } }) => [kind, length])).toEqual([
      ['gained', slots],
      ['lost', second.held],
    ])
    const told = await first.group.nodes()
    expect(told.map(({ data, slots: own }) => [data.node, data.url, own.length]).sort()).toEqual([
      ['a', 'http://a', first.held],
      ['b', 'http://b', second.held],
    ])

    const kept = new Map(second.group.held)
    await first.group.leave()
    await until('all slots', () => second.held === slots, 30_000)
    for (const [slot, generation] of kept) expect(second.group.held.get(slot)).toBe(generation)
    // Who left can still see who has taken over.
    await until(
      'claims',
      async () => [...(await first.group.claims()).values()].every(({ node }) => node === 'b'),
      30_000,
    )
    for (const [slot, { generation }] of await first.group.claims())
      expect(generation).toBeGreaterThanOrEqual(claims.get(slot) ?? Infinity)
  }, 90_000)

  it('weighs nodes by what they say they can hold', async () => {
    const topic = await topicOf('weighs')
    join('small', topic, 1)
    join('large', topic, 3)
    await shared(slots / 4, (3 * slots) / 4)
  }, 90_000)

  it('R163: goes on with what it holds while the broker is away', async () => {
    const topic = await topicOf('away')
    const node = join('alone', topic)
    await until('all slots', () => node.held === slots, 30_000)
    const claims = new Map(node.group.held)
    await broker.kill()
    await until('silence', () => node.group.silentMs > 8_000, 30_000)
    expect(new Map(node.group.held)).toEqual(claims)
    await broker.start()
    await until('an answer', () => node.group.silentMs < 2_000, 60_000)
    await until('all slots', () => node.held === slots, 30_000)
    expect(node.events.filter(({ kind }) => kind === 'lost')).toEqual([])
    expect(new Map(node.group.held)).toEqual(claims)
  }, 120_000)
})
