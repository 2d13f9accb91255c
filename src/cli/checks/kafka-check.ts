import { Kafka, logLevel, type SASLOptions } from 'kafkajs'
import type { KafkaConfig } from '../../config/outputs.js'
import { atMost } from '../../lifecycle/delay.js'
import type { Finding } from '../findings.js'

const limitMs = 5_000

/** Asks each broker of the list for its cluster and topics, one by one: a single typing error in the list must show. */
export async function checkKafka(config: KafkaConfig, network: boolean): Promise<Finding[]> {
  return Promise.all(config.brokers.map((broker) => checkBroker(broker, config, network)))
}

async function checkBroker(broker: string, config: KafkaConfig, network: boolean): Promise<Finding> {
  const subject = `kafka ${broker}`
  if (!network) return { subject, state: 'skipped', detail: 'offline' }
  const kafka = new Kafka({
    clientId: config.clientId,
    brokers: [broker],
    ssl: config.ssl,
    ...(config.sasl && { sasl: config.sasl as SASLOptions }),
    connectionTimeout: 2_000,
    authenticationTimeout: 2_000,
    requestTimeout: 2_000,
    retry: { retries: 0 },
    logLevel: logLevel.NOTHING,
  })
  const admin = kafka.admin()
  try {
    const found = await atMost(
      limitMs,
      admin
        .connect()
        .then(async () => ({ cluster: await admin.describeCluster(), topics: await admin.listTopics() })),
    )
    if (found === undefined) return failed(subject, `no answer within ${limitMs} ms`)
    return topicsFinding(subject, found.cluster.brokers.length, found.topics, config)
  } catch (error) {
    return failed(subject, error instanceof Error ? error.message : String(error))
  } finally {
    void admin.disconnect().catch(() => undefined)
  }
}

function topicsFinding(
  subject: string,
  brokers: number,
  topics: readonly string[],
  config: KafkaConfig,
): Finding {
  const missing = Object.values(config.topics).filter((topic) => !topics.includes(topic))
  const cluster = `cluster of ${brokers}`
  if (missing.length === 0) return { subject, state: 'ok', detail: `${cluster}, topics are there` }
  const absent = `${cluster}, no topic ${missing.join(', ')}`
  if (config.createTopics)
    return { subject, state: 'ok', detail: `${absent} yet: created on the first record` }
  return {
    subject,
    state: 'failed',
    detail: absent,
    fix: 'create them, or set sinks.kafka.createTopics: true',
  }
}

function failed(subject: string, detail: string): Finding {
  return {
    subject,
    state: 'failed',
    detail,
    fix: 'start the broker, or correct sinks.kafka.brokers, ssl and sasl',
  }
}
