import { execFile, spawnSync } from 'node:child_process'
import { createServer, request } from 'node:http'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { ServerProcess } from './child.js'
import { freePort } from './free-port.js'
import { resolveJars } from './kafka-jars.js'
import { LocalServer } from './local-server.js'
import { until } from './until.js'

const starterVariable = 'GANTRY_TEST_KAFKA_STARTER'
const startupMs = 90_000

export type BrokerOptions = Readonly<{
  /** Port to listen on; a free one by default. */
  port?: number
  /** Port clients are sent to, when a proxy stands before the broker. */
  advertisedPort?: number
  properties?: Readonly<Record<string, string>>
  /** Further listeners on free ports, by name; the first one stays plain. */
  listeners?: Readonly<Record<string, 'SSL' | 'SASL_SSL' | 'SASL_PLAINTEXT'>>
  /** Users of SCRAM with their passwords. */
  scramUsers?: Readonly<Record<string, string>>
  /** Arguments of Java. */
  java?: readonly string[]
  /** Its place among several brokers; otherwise it is alone. */
  node?: KafkaNode
}>

/** One of several brokers of a cluster, each of which is a controller, too. */
export type KafkaNode = Readonly<{
  id: number
  clusterId: string
  controllerPort: number
  /** All of them, as `controller.quorum.voters` has them. */
  voters: string
}>

/**
 * Why no broker can be started here, or undefined when one can. Where there is none, tests are skipped and say so on stderr; in CI that is
 * a failure.
 */
export async function kafkaMissing(): Promise<string | undefined> {
  const resolved = await resolveJars()
  if (!('missing' in resolved)) return undefined
  if (process.env['CI']) throw new Error(`Kafka tests must run in CI: ${resolved.missing}`)
  process.stderr.write(`\nSKIPPED: tests against a real Kafka broker: ${resolved.missing}\n`)
  return resolved.missing
}

/** A real Apache Kafka broker, one node in KRaft mode, on loopback, with its own data folder. */
export class KafkaBroker extends LocalServer {
  private constructor(
    folder: string,
    port: number,
    readonly jars: string,
    readonly options: BrokerOptions,
    /** Of further listeners, by name. */
    readonly ports: Readonly<Record<string, number>>,
  ) {
    super(folder, port)
  }

  /** Prepares data folder and ports without starting: for tests in which the broker comes late. */
  static async prepare(options: BrokerOptions = {}): Promise<KafkaBroker> {
    const resolved = await resolveJars()
    if ('missing' in resolved) throw new Error(resolved.missing)
    const folder = await mkdtemp(join(tmpdir(), 'gantry-kafka-'))
    const port = options.port ?? (await freePort())
    const ports: Record<string, number> = {}
    for (const name of Object.keys(options.listeners ?? {})) ports[name] = await freePort()
    const controllerPort = options.node?.controllerPort ?? (await freePort())
    const properties = brokerProperties(folder, port, controllerPort, options, ports)
    await writeFile(join(folder, 'server.properties'), properties)
    const broker = new KafkaBroker(folder, port, resolved.jars, options, ports)
    broker.#format()
    return broker
  }

  static async start(options: BrokerOptions = {}): Promise<KafkaBroker> {
    const broker = await KafkaBroker.prepare(options)
    await broker.start()
    return broker
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  /**
   * Starts, or starts again on the same data, and waits until the broker answers at its advertised address: a proxy before it must be
   * there already.
   */
  override async start(): Promise<void> {
    this.launch()
    await this.answers()
  }

  /** Does not wait: one of several answers only when most of them run. */
  launch(): void {
    const args = [
      ...javaArgs(this.jars, '-Xmx384m', '-Xms96m', ...(this.options.java ?? [])),
      'kafka.Kafka',
      join(this.folder, 'server.properties'),
    ]
    this.process = ServerProcess.start('java', args, join(this.folder, 'broker.log'))
  }

  /** Waits until it answers, and says that it is one of its cluster. */
  async answers(): Promise<void> {
    const server = this.process
    const id = this.options.node?.id ?? 1
    const admin = new Kafka({
      brokers: [this.address],
      logLevel: logLevel.NOTHING,
      connectionTimeout: 1_000,
      requestTimeout: 5_000,
      retry: { retries: 0 },
    }).admin()
    try {
      await until(
        'Kafka broker',
        async () => {
          if (server?.running !== true) throw new Error(`the broker ended: ${await this.log()}`)
          await admin.connect()
          return (await admin.describeCluster()).brokers.some(({ nodeId }) => nodeId === id)
        },
        startupMs,
      )
    } catch (error) {
      await server?.end('SIGKILL')
      throw error
    } finally {
      await admin.disconnect()
    }
  }

  async log(): Promise<string> {
    const text = await readFile(join(this.folder, 'broker.log'), 'utf8').catch(() => '')
    return text.slice(-4_000)
  }

  #format(): void {
    const clusterId = this.options.node?.clusterId ?? newClusterId()
    const properties = join(this.folder, 'server.properties')
    const users = Object.entries(this.options.scramUsers ?? {}).flatMap(([name, password]) =>
      ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
        '--add-scram',
        `${mechanism}=[name=${name},password=${password}]`,
      ]),
    )
    const args = ['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', properties, ...users]
    const { status, stderr } = spawnSync('java', [...javaArgs(this.jars, '-Xmx128m'), ...args], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`Kafka storage could not be formatted: ${stderr}`)
  }
}

export function newClusterId(): string {
  // A leading dash would be read as an option.
  return randomBytes(16).toString('base64url').replace(/^-/, 'A')
}

function javaArgs(jars: string, ...memory: string[]): string[] {
  const jvm = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto']
  const log = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn']
  return [...memory, ...jvm, ...log, '-cp', join(jars, '*')]
}

/** A record batch as Kafka's own tool finds it in the broker's log. */
export type StoredBatch = Readonly<{ records: number; bytes: number; codec: string }>

/** Batches of the first segment of partition 0 of a topic, by `kafka.tools.DumpLogSegments`. */
export async function storedBatches(
  broker: Pick<KafkaBroker, 'folder'>,
  topic: string,
): Promise<StoredBatch[]> {
  const resolved = await resolveJars()
  if ('missing' in resolved) throw new Error(resolved.missing)
  const segment = join(broker.folder, 'data', `${topic}-0`, `${'0'.repeat(20)}.log`)
  const args = [...javaArgs(resolved.jars, '-Xmx128m'), 'kafka.tools.DumpLogSegments', '--files', segment]
  const { stdout } = await promisify(execFile)('java', args, { timeout: 60_000 })
  const batches = stdout.matchAll(/ count: (\d+) .* size: (\d+) .* compresscodec: (\w+) /g)
  return [...batches].map(([, records, bytes, codec = '']) => {
    return { records: Number(records), bytes: Number(bytes), codec }
  })
}

function brokerProperties(
  folder: string,
  port: number,
  controllerPort: number,
  options: BrokerOptions,
  ports: Readonly<Record<string, number>>,
): string {
  const further = (host: string) => Object.entries(ports).map(([name, at]) => `,${name}://${host}:${at}`)
  const protocols = Object.entries(options.listeners ?? {}).map(([name, protocol]) => `,${name}:${protocol}`)
  const properties: Record<string, string> = {
    'process.roles': 'broker,controller',
    'node.id': String(options.node?.id ?? 1),
    'controller.quorum.voters': options.node?.voters ?? `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}${further('127.0.0.1').join('')}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${options.advertisedPort ?? port}${further('127.0.0.1').join('')}`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'listener.security.protocol.map': `PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT${protocols.join('')}`,
    'log.dirs': join(folder, 'data'),
    'auto.create.topics.enable': 'false',
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'transaction.state.log.num.partitions': '1',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',
    'group.initial.rebalance.delay.ms': '0',
    'log.cleaner.dedupe.buffer.size': String(4 * 1024 ** 2),
    'log.cleaner.threads': '1',
    'num.network.threads': '2',
    'num.io.threads': '2',
    ...options.properties,
  }
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('')
}

/**
 * For the global set-up of a test run: a broker is started when the first test asks for the shared one, and not before.
 *
 * @returns the teardown.
 */
export async function prepareKafka(): Promise<() => Promise<void>> {
  let broker: Promise<KafkaBroker> | undefined
  const folder = await mkdtemp(join(tmpdir(), 'gantry-kafka-starter-'))
  const path = join(folder, 'starter.sock')
  const starter = createServer((_, response) => {
    broker ??= KafkaBroker.start()
    broker.then(
      ({ address, folder }) => response.end(JSON.stringify({ address, folder })),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => starter.listen(path, resolve))
  process.env[starterVariable] = path
  return async () => {
    starter.close()
    starter.closeAllConnections()
    await broker?.then((started) => started.stop()).catch(() => undefined)
    await rm(folder, { recursive: true, force: true })
  }
}

type SharedBroker = Pick<KafkaBroker, 'address' | 'folder'>

/** The broker all tests of a run share: use topics of your own. Without global set-up it is this file's own. */
export async function sharedKafka(): Promise<SharedBroker & { release: () => Promise<void> }> {
  const path = process.env[starterVariable]
  if (path === undefined) {
    const broker = await KafkaBroker.start()
    return { address: broker.address, folder: broker.folder, release: () => broker.stop() }
  }
  const body = await new Promise<string>((resolve, reject) => {
    const call = request({ socketPath: path, path: '/' }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('end', () => (response.statusCode === 200 ? resolve(text) : reject(new Error(text))))
    })
    call.on('error', reject)
    call.end()
  })
  return { ...(JSON.parse(body) as SharedBroker), release: async () => undefined }
}
