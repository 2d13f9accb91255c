import type { KafkaPlace, SinkPlaces } from '../../api/gantry.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { mqttOf, webhooksOf } from '../../config/sinks.js'

/** Where records go, for who reads them. Nothing of a login but its kind, and nothing of a URL that may be one. */
export function sinkPlaces({ sinks }: Pick<PipelineConfig, 'sinks'>): SinkPlaces {
  return {
    kafka: kafkaPlace(sinks),
    webhooks: webhooksOf(sinks).map(({ name, config }) => ({
      name,
      origin: new URL(config.url).origin,
      signed: config.secret !== undefined,
      batches: config.maxBatchRecords > 1,
    })),
    mqtt: mqttOf(sinks).map(({ name, config: { url, username, topicPrefix, homeAssistant } }) => ({
      name,
      broker: url,
      wantsLogin: username !== undefined,
      topicPrefix,
      homeAssistant,
    })),
  }
}

function kafkaPlace({ kafka }: PipelineConfig['sinks']): KafkaPlace | null {
  if (kafka === undefined) return null
  const { brokers, topics, ssl, sasl } = kafka
  const transport = ssl === false ? 'PLAINTEXT' : 'SSL'
  return {
    brokers,
    topic: topics.detections,
    security: sasl === undefined ? transport : `SASL_${transport}`,
    saslMechanism: sasl?.mechanism.toUpperCase() ?? null,
  }
}
