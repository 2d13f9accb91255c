import type { Admin } from 'kafkajs'
import { isLoopbackHost } from '../../api/access.js'
import { checkCameraTopic } from '../../cluster/cluster-topics.js'
import { clusterKafka, type ClusterConfig } from '../../config/cluster.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import type { MemberData } from '../../cluster/member-data.js'
import type { Finding } from '../findings.js'
import { askBroker, openSecret } from './ask-broker.js'
import { checkNodes, otherMembers } from './nodes-check.js'

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
  let members: readonly MemberData[] = []
  const asked = network
    ? await Promise.all(
        connection.brokers.map((broker) =>
          askBroker(broker, kafka, `${subject} ${broker}`, async (admin) => {
            const finding = await topicFinding(admin, config, `${subject} ${broker}`)
            members = await otherMembers(admin, config)
            return finding
          }),
        ),
      )
    : [{ subject, state: 'skipped' as const, detail: 'offline' }]
  // Said of sinks.kafka already.
  const secret = setting === 'cluster.kafka' ? openSecret(connection, setting) : []
  const nodes = await checkNodes(subject, members, config, server)
  return [
    ...addressFinding(subject, config, server),
    ...certificateFinding(subject, config, server),
    ...secret,
    ...asked,
    ...nodes,
  ]
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

/** All nodes are set up alike: what this one asks of others they ask of it. */
function certificateFinding(
  subject: string,
  { tls }: Pick<ClusterConfig, 'tls'>,
  { tls: own }: Pick<PipelineConfig['server'], 'tls'>,
): Finding[] {
  if (own?.clientCa === undefined || tls?.cert !== undefined) return []
  return [
    {
      subject,
      state: 'warning',
      detail: 'server.tls.clientCa asks other nodes for a certificate, and this one has none to show them',
      fix: 'set cluster.tls.cert and cluster.tls.key to a pair that this CA signed, on all nodes',
    },
  ]
}
