import type { Admin } from 'kafkajs'
import { isLoopbackHost } from '../../api/access.js'
import { checkCameraTopic } from '../../cluster/cluster-topics.js'
import { clusterKafka, type ClusterConfig } from '../../config/cluster.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import type { Finding } from '../findings.js'
import { askBroker, openSecret } from './ask-broker.js'

/** Whether this node could join its cluster, and whether others could reach it. */
export async function checkCluster(
  { server, sinks }: Pick<PipelineConfig, 'server' | 'sinks'>,
  config: ClusterConfig,
  network: boolean,
): Promise<Finding[]> {
  const kafka = clusterKafka(config, sinks.kafka)
  if (kafka === undefined) return []
  const { connection, setting } = kafka
  const subject = `cluster ${config.id}`
  const asked = network
    ? await Promise.all(
        connection.brokers.map((broker) =>
          askBroker(broker, kafka, `${subject} ${broker}`, (admin) =>
            topicFinding(admin, config, `${subject} ${broker}`),
          ),
        ),
      )
    : [{ subject, state: 'skipped' as const, detail: 'offline' }]
  // Said of sinks.kafka already.
  const secret = setting === 'cluster.kafka' ? openSecret(connection, setting) : []
  return [...addressFinding(subject, config, server), ...secret, ...asked]
}

/** @throws SlotsDifferError, TopicForgetsError, what the client says */
async function topicFinding(admin: Admin, config: ClusterConfig, subject: string): Promise<Finding> {
  const { cameras, cameraErrors } = config.topics
  const there = await admin.listTopics()
  if (there.includes(cameras)) await checkCameraTopic(admin, config)
  const missing = [cameras, cameraErrors].filter((topic) => !there.includes(topic))
  if (missing.length === 0) return { subject, state: 'ok', detail: `${config.slots} slots, topics are there` }
  const detail = `no topic ${missing.join(', ')}`
  if (config.createTopics) return { subject, state: 'ok', detail: `${detail} yet: created at the start` }
  return { subject, state: 'failed', detail, fix: 'create them, or set cluster.createTopics: true' }
}

function addressFinding(
  subject: string,
  { url }: ClusterConfig,
  { host }: Pick<PipelineConfig['server'], 'host'>,
): Finding[] {
  if (!isLoopbackHost(host) || (url !== undefined && !isLoopbackHost(new URL(url).hostname))) return []
  return [
    {
      subject,
      state: 'warning',
      detail: 'server.host is on loopback: nodes on other machines cannot ask this one',
      fix: 'set server.host: 0.0.0.0 with server.token, or cluster.url to what stands before it',
    },
  ]
}
