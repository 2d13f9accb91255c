import type { KafkaConnection } from '../config/outputs.js'
import { connectionAdvice } from '../delivery/kafka/kafka-advice.js'
import { causes, protocolTypes } from '../delivery/kafka/kafka-errors.js'

/** What brokers say that do not allow something, and what it is about. */
const forbidden: Readonly<Record<string, string>> = {
  TOPIC_AUTHORIZATION_FAILED: 'the topics of cluster.topics',
  GROUP_AUTHORIZATION_FAILED: 'the groups gantry.<cluster.id>...',
  CLUSTER_AUTHORIZATION_FAILED: 'making the topics of cluster.topics',
}

/**
 * Why brokers do not let a node into its cluster, with what to do; undefined for any other reason.
 *
 * @param error - of the client library
 * @param ofSocket - what ended the connection before that, if it failed by itself
 * @param setting - where the section of the brokers stands
 */
export function clusterAdvice(
  error: unknown,
  ofSocket: Error | undefined,
  connection: KafkaConnection,
  setting: string,
): string | undefined {
  const about = protocolTypes(error)
    .map((type) => forbidden[type])
    .find((what) => what !== undefined)
  if (about !== undefined)
    return `the brokers do not allow this node ${about}: give its login the rights that docs/cluster.md lists`
  // All that the client library says of a group that it may not see.
  if ([...causes(error)].some(({ name }) => name === 'KafkaJSGroupCoordinatorNotFound'))
    return (
      'the brokers name no coordinator of groups: they are starting, or do not allow this node the groups gantry.<cluster.id>...; ' +
      'the rights it needs are in docs/cluster.md'
    )
  const advice = connectionAdvice(error, ofSocket, connection, setting)
  return advice && `${advice.reason}; ${advice.fix}`
}
