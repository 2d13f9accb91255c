import { logLevel } from 'kafkajs'
import type { KafkaConfig } from '../../config/outputs.js'
import { useCodec } from '../../delivery/kafka/codecs.js'
import { connectionAdvice } from '../../delivery/kafka/kafka-advice.js'
import { KafkaClients } from '../../delivery/kafka/kafka-client.js'
import { recordTopics } from '../../delivery/kafka/kafka-topics.js'
import { SocketGuard } from '../../delivery/kafka/socket-guard.js'
import { GantryError } from '../../errors.js'
import { atMost } from '../../lifecycle/delay.js'
import { silentLog } from '../../lifecycle/log.js'
import type { Finding } from '../findings.js'

const limitMs = 8_000

/** Asks each broker of the list for its cluster and topics, one by one: a single typing error in the list must show. */
export async function checkKafka(config: KafkaConfig, network: boolean): Promise<Finding[]> {
  const brokers = await Promise.all(config.brokers.map((broker) => checkBroker(broker, config, network)))
  return [...(await codecFindings(config)), ...openSecret(config), ...brokers]
}

async function checkBroker(broker: string, config: KafkaConfig, network: boolean): Promise<Finding> {
  const subject = `kafka ${broker}`
  if (!network) return { subject, state: 'skipped', detail: 'offline' }
  const guard = new SocketGuard()
  const ask = async () => {
    const kafka = await new KafkaClients(config, silentLog()).create(guard, {
      brokers: [broker],
      connectionTimeout: 2_000,
      authenticationTimeout: 5_000,
      requestTimeout: 2_000,
      retry: { retries: 0 },
      logLevel: logLevel.NOTHING,
    })
    const admin = kafka.admin()
    try {
      await admin.connect()
      return { cluster: await admin.describeCluster(), topics: await admin.listTopics() }
    } finally {
      void admin.disconnect().catch(() => undefined)
    }
  }
  try {
    const found = await atMost(limitMs, ask())
    if (found === undefined) return failed(subject, `no answer within ${limitMs} ms`)
    return topicsFinding(subject, found.cluster.brokers.length, found.topics, config)
  } catch (error) {
    const { reason, fix } = connectionAdvice(error, guard.failure, config) ?? {}
    return failed(subject, reason ?? (error instanceof Error ? error.message : String(error)), fix)
  } finally {
    guard.close()
  }
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

/** A secret that anybody on the way can read. */
function openSecret({ sasl, ssl }: KafkaConfig): Finding[] {
  const subject = 'kafka login'
  if (/^http:/i.test(sasl?.tokenEndpoint ?? ''))
    return [
      {
        subject,
        state: 'warning',
        detail: 'clientSecret travels without TLS to sinks.kafka.sasl.tokenEndpoint',
        fix: 'give it an https:// URL',
      },
    ]
  const isReadable = ssl === false && (sasl?.mechanism === 'plain' || sasl?.mechanism === 'oauthbearer')
  return isReadable
    ? [
        {
          subject,
          state: 'warning',
          detail: 'it travels without TLS',
          fix: 'set sinks.kafka.ssl, or a scram mechanism',
        },
      ]
    : []
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

function failed(subject: string, detail: string, fix?: string): Finding {
  return {
    subject,
    state: 'failed',
    detail,
    fix: fix ?? 'start the broker, or correct sinks.kafka.brokers, ssl and sasl',
  }
}
