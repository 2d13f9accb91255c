import { unstoredLimits } from '../../config/outputs.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { mqttOf, webhooksOf } from '../../config/sinks.js'
import { OutboxQueue } from '../../delivery/outbox-queue.js'
import type { ResultSink } from '../../delivery/result-sink.js'
import { AddressPolicy } from '../../lifecycle/address-policy.js'
import type { Log } from '../../lifecycle/log.js'
import type { ServiceMetrics } from '../../metrics/service-metrics.js'
import type { RecordStore } from '../../store/record-store.js'
import type { CameraStatus } from '../../vision/camera-state.js'

type SinkDeps = Readonly<{
  config: PipelineConfig
  store: RecordStore
  /** Every camera there is, now. */
  cameras: () => Iterable<Readonly<{ config: Readonly<{ id: string }>; status: CameraStatus }>>
  version: string
  metrics: ServiceMetrics
  log: Log
}>

/** The sinks of the settings. The library of each is loaded where it is set alone. */
export async function createSinks({
  config,
  store,
  cameras,
  version,
  metrics,
  log,
}: SinkDeps): Promise<ResultSink[]> {
  const { sinks, cameraNetworks } = config
  const policy = new AddressPolicy(cameraNetworks)
  const created: ResultSink[] = []
  const queues = new Map<string, OutboxQueue>()
  const queueOf = (name: string, limits: Parameters<typeof unstoredLimits>[0] = {}) => {
    const queue = new OutboxQueue(name, store, unstoredLimits(limits))
    queues.set(name, queue)
    return queue
  }
  store.onPlaces = (places) => {
    for (const place of places) queues.get(place.sink)?.resume(place, store.newest)
  }
  if (sinks.kafka !== undefined) {
    const { createKafkaSink } = await import('../../delivery/kafka/kafka-sink.js')
    created.push(createKafkaSink(sinks.kafka, queueOf('kafka', sinks.kafka), metrics, log))
  }
  for (const webhook of webhooksOf(sinks)) {
    const { createWebhookSink } = await import('../../delivery/webhook/webhook-sink.js')
    const parts = { webhook, userAgent: `gantry/${version}`, policy, log }
    created.push(createWebhookSink(parts, queueOf(webhook.name), metrics))
  }
  for (const mqtt of mqttOf(sinks)) {
    const { MqttSink } = await import('../../delivery/mqtt/mqtt-sink.js')
    const states = () =>
      [...cameras()].map(({ config: { id }, status: { state, reason } }) => ({ id, state, reason }))
    const parts = { mqtt, policy, log, version, cameras: states }
    created.push(new MqttSink(parts, queueOf(mqtt.name), metrics))
  }
  return created
}
