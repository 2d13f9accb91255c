import { type AclEntry, AclOperationTypes, AclPermissionTypes, AclResourceTypes, Kafka, logLevel, ResourcePatternTypes } from 'kafkajs' // prettier-ignore
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { Cluster } from '../../src/cluster/cluster.js'
import { cameraSchema } from '../../src/config/camera.js'
import { clusterSchema } from '../../src/config/cluster.js'
import { createClusterMetrics } from '../../src/metrics/cluster-metrics.js'
import { KafkaBroker, kafkaMissing } from '../support/kafka.js'
import { silentLog } from '../support/silent-log.js'
import { until } from '../support/until.js'

const missing = await kafkaMissing()
const slots = 16
const camera = (id: string) => cameraSchema.parse({ id, url: 'rtsp://192.0.2.7/stream' })
const withinMs = 60_000

type Wishes = Readonly<{ config?: object; url?: string; models?: string; sasl?: object }>

/** A node without a service behind it, and the cameras that it was told to run. */
class Member {
  readonly running = new Set<string>()
  readonly cluster: Cluster
  readonly #cut = new AbortController()
  #started: Promise<void> | undefined

  constructor(
    node: string,
    address: string,
    { config = {}, url = `http://${node}`, models = 'm', sasl }: Wishes = {},
  ) {
    const kafka = { brokers: [address], ...(sasl && { sasl }) }
    const parsed = clusterSchema.parse({ id: 'plant', node, slots, kafka, ...config })
    this.cluster = new Cluster(
      {
        config: parsed,
        kafka: { connection: parsed.kafka!, setting: 'cluster.kafka' },
        url,
        models,
        version: '1',
      },
      {
        capacity: () => ({ cores: 2, framesPerSecond: null }),
        metrics: createClusterMetrics(new Registry()),
        runs: ({ id }) => this.running.add(id),
        leaves: (id) => this.running.delete(id),
        liveHere: () => [...this.running],
        liveOn: () => Promise.resolve(undefined),
        log: silentLog(),
      },
    )
  }

  start(...ids: readonly string[]): this {
    this.#started = this.cluster.start(ids.map(camera), this.#cut.signal).catch((error: unknown) => {
      if (!this.#cut.signal.aborted) throw error
    })
    return this
  }

  is(state: string, reason = /./): Promise<unknown> {
    return until(
      `${state} for ${reason}`,
      () => this.cluster.health.state === state && reason.test(this.cluster.health.reason || ' '),
      withinMs,
    )
  }

  async stop(): Promise<void> {
    this.#cut.abort()
    await Promise.all([this.#started, this.cluster.stop()])
  }
}

describe.skipIf(missing !== undefined)('a node', () => {
  const brokers: KafkaBroker[] = []
  const members: Member[] = []

  afterEach(async () => {
    await Promise.all(members.splice(0).map((member) => member.stop()))
    await Promise.all(brokers.splice(0).map((broker) => broker.stop()))
  }, 60_000)

  function member(name: string, address: string, wishes?: Wishes): Member {
    const made = new Member(name, address, wishes)
    members.push(made)
    return made
  }

  it('R171: waits for brokers that are away when it starts, and says so; leaves in time while they are away', async () => {
    const broker = await KafkaBroker.prepare()
    brokers.push(broker)
    const node = member('a', broker.address).start('dock', 'gate')
    await node.is('joining', /ECONNREFUSED|Connection|broker/i)
    expect(node.cluster.registry.cameras.size).toBe(0)
    await broker.start()
    await node.is('member')
    await until('its cameras', () => node.running.size === 2, withinMs)
    expect([...node.running].sort()).toEqual(['dock', 'gate'])

    await broker.kill()
    await node.is('cut_off')
    expect(node.running.size).toBe(2)
    const beganMs = performance.now()
    await node.cluster.handOver(25_000)
    await node.stop()
    expect(performance.now() - beganMs).toBeLessThan(20_000)
  }, 240_000)

  it('R168: is kept out where its topics are others, and told of names and models that do not go together', async () => {
    const broker = await KafkaBroker.start()
    brokers.push(broker)
    const first = member('a', broker.address).start('dock')
    await first.is('member', / /)
    const odd = member('odd', broker.address, { config: { topics: { cameras: 'others.v1' } } }).start('gate')
    await odd.is('joining', /16 slots of others\.v1.*node a 16 slots of gantry\.cameras\.v1.*cluster\.id/)
    await first.is('member', /node odd gets no cameras/)
    expect([first.cluster.group.held.size, odd.cluster.group.held.size]).toEqual([slots, 0])
    expect([...first.running]).toEqual(['dock'])

    await odd.stop()
    const twin = member('a', broker.address, { url: 'http://twin' }).start()
    await first.is('member', /http:\/\/twin calls itself a, too: .*cluster\.node/)
    await twin.is('member', /http:\/\/a calls itself a, too/)
    await twin.stop()
    member('b', broker.address, { models: 'n' }).start()
    await first.is('member', /node b runs n .* this one m/)
  }, 240_000)

  it('R169: tells what was wrong in the topic before any node was there, and does not touch it', async () => {
    const broker = await KafkaBroker.start()
    brokers.push(broker)
    const kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING })
    const first = member('a', broker.address).start('dock')
    await until('its camera', () => first.running.size === 1, withinMs)
    await first.stop()
    const producer = kafka.producer()
    await producer.connect()
    const wrong = JSON.stringify({ version: 1, camera: { url: 'rtsp://192.0.2.7/x', fps: 1 } })
    await producer.send({
      topic: 'gantry.cameras.v1',
      messages: [
        { key: 'new', value: wrong },
        { key: 'gate', value: JSON.stringify({ version: 9 }) },
      ],
    })
    await producer.disconnect()
    const second = member('b', broker.address).start('gate', 'dock')
    await until('its camera', () => second.running.size === 1, withinMs)
    // A camera of its file that a newer version has set is not set back.
    expect([...second.running]).toEqual(['dock'])
    const consumer = kafka.consumer({ groupId: 'errors' })
    const told: unknown[] = []
    await consumer.connect()
    await consumer.subscribe({ topic: 'gantry.cameras.errors.v1', fromBeginning: true })
    await consumer.run({
      eachMessage: ({ message }) => Promise.resolve(void told.push(JSON.parse(String(message.value)))),
    })
    await until('what is wrong', () => told.length > 0, withinMs)
    await consumer.disconnect()
    expect(told).toEqual([
      expect.objectContaining({ cameraId: 'new', node: 'b', reason: expect.stringMatching(/fps/) as string }),
    ])
    expect(second.cluster.registry.has('new')).toBe(true)
  }, 240_000)

  it('S41: needs the rights that docs/cluster.md lists, and no more; without them it says what is missing', async () => {
    const login = { username: 'gantry', password: 'scram-secret' }
    const broker = await KafkaBroker.start({
      listeners: { LOGIN: 'SASL_PLAINTEXT' },
      scramUsers: { [login.username]: login.password },
      properties: {
        'listener.name.login.sasl.enabled.mechanisms': 'SCRAM-SHA-256',
        'listener.name.login.scram-sha-256.sasl.jaas.config':
          'org.apache.kafka.common.security.scram.ScramLoginModule required;',
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'super.users': 'User:ANONYMOUS',
      },
    })
    brokers.push(broker)
    const sasl = { mechanism: 'scram-sha-256', ...login }
    const admin = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const allow = (
      resourceType: AclResourceTypes,
      resourceName: string,
      ...operations: AclOperationTypes[]
    ) =>
      admin.createAcls({
        acl: operations.map((operation): AclEntry => ({
          ...{ resourceType, resourceName, operation, principal: 'User:gantry', host: '*' },
          resourcePatternType:
            resourceType === AclResourceTypes.GROUP
              ? ResourcePatternTypes.PREFIXED
              : ResourcePatternTypes.LITERAL,
          permissionType: AclPermissionTypes.ALLOW,
        })),
      })
    const { READ, WRITE, DESCRIBE, CREATE } = AclOperationTypes
    const node = member('a', `127.0.0.1:${broker.ports['LOGIN']}`, { sasl }).start('dock')
    await node.is('joining', /do not allow this node the topics .*docs\/cluster\.md/)
    for (const topic of ['gantry.cameras.v1', 'gantry.cameras.errors.v1'])
      await allow(AclResourceTypes.TOPIC, topic, CREATE)
    await allow(AclResourceTypes.TOPIC, 'gantry.cameras.v1', DESCRIBE, READ, WRITE)
    await allow(AclResourceTypes.TOPIC, 'gantry.cameras.errors.v1', DESCRIBE, WRITE)
    await node.is('joining', /do not allow this node the groups .*docs\/cluster\.md/)
    await allow(AclResourceTypes.GROUP, 'gantry.plant', READ)
    await admin.disconnect()
    await node.is('member')
    await until('its camera', () => node.running.size === 1, withinMs)
    await node.cluster.registry.set(camera('gate'))
    expect([...node.running].sort()).toEqual(['dock', 'gate'])
  }, 240_000)
})
