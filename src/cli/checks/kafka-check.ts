import type { KafkaConfig } from '../../config/outputs.js'
import { useCodec } from '../../delivery/kafka/codecs.js'
import { recordTopics } from '../../delivery/kafka/kafka-topics.js'
import { GantryError } from '../../errors.js'
import type { Finding } from '../findings.js'
import { askBroker, openSecret } from './ask-broker.js'

/** Asks each broker of the list for its cluster and topics, one by one: a single typing error in the list must show. */
export async function checkKafka(config: KafkaConfig, network: boolean): Promise<Finding[]> {
  const brokers = await Promise.all(config.brokers.map((broker) => checkBroker(broker, config, network)))
  return [...(await codecFindings(config)), ...openSecret(config, 'sinks.kafka'), ...brokers]
}

async function checkBroker(broker: string, config: KafkaConfig, network: boolean): Promise<Finding> {
  const subject = `kafka ${broker}`
  if (!network) return { subject, state: 'skipped', detail: 'offline' }
  return askBroker(broker, { connection: config, setting: 'sinks.kafka' }, subject, async (admin) => {
    const { brokers } = await admin.describeCluster()
    return topicsFinding(subject, brokers.length, await admin.listTopics(), config)
  })
}

async function codecFindings({ compression }: KafkaConfig): Promise<Finding[]> {
  try {
    await useCodec(compression)
    return []
  } catch (error) {
    if (!(error instanceof GantryError)) throw error
    return [{ subject: 'kafka', state: 'failed', detail: error.message, fix: error.hint }]
  }
}

function topicsFinding(
  subject: string,
  brokers: number,
  topics: readonly string[],
  config: KafkaConfig,
): Finding {
  const missing = recordTopics(config).filter((topic) => !topics.includes(topic))
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
