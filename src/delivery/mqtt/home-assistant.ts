import { cameraStates } from '../../vision/camera-state.js'
import { type MqttTopics, statusPayloads } from './mqtt-topics.js'

/** A topic and what is to be retained there. */
export type Retained = readonly [topic: string, payload: string]

export type DiscoverySettings = Readonly<{ discoveryPrefix: string; topics: MqttTopics; version: string }>

/**
 * What Home Assistant is told of the service: whether it runs.
 *
 * @see https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery
 */
export function serviceDiscovery({ discoveryPrefix, topics, version }: DiscoverySettings): Retained {
  const device = serviceDevice(topics)
  return retained(`${discoveryPrefix}/binary_sensor/${device}/status/config`, {
    name: 'Status',
    unique_id: `${device}_status`,
    state_topic: topics.status,
    payload_on: statusPayloads.up,
    payload_off: statusPayloads.down,
    device_class: 'connectivity',
    device: {
      identifiers: [device],
      name: `Gantry ${topics.prefix}`,
      manufacturer: 'Gantry',
      sw_version: version,
    },
    origin: { name: 'Gantry', sw_version: version },
  })
}

/** A camera: its state, and how many of each label it sees. */
export function cameraDiscovery(
  cameraId: string,
  labels: readonly string[],
  { discoveryPrefix, topics, version }: DiscoverySettings,
): readonly Retained[] {
  const device = `${serviceDevice(topics)}_${slug(cameraId)}`
  const state = topics.stateOf(cameraId)
  const up = {
    topic: topics.status,
    payload_available: statusPayloads.up,
    payload_not_available: statusPayloads.down,
  }
  const live = { topic: state, value_template: "{{ 'online' if value_json.state == 'live' else 'offline' }}" }
  const common = {
    state_topic: state,
    device: {
      identifiers: [device],
      name: cameraId,
      manufacturer: 'Gantry',
      model: 'Camera',
      via_device: serviceDevice(topics),
    },
    origin: { name: 'Gantry', sw_version: version },
  }
  const ofState = retained(`${discoveryPrefix}/sensor/${device}/state/config`, {
    name: 'State',
    unique_id: `${device}_state`,
    value_template: '{{ value_json.state }}',
    device_class: 'enum',
    options: cameraStates,
    availability: [up],
    icon: 'mdi:cctv',
    ...common,
  })
  const counts = labels.map((label) =>
    retained(`${discoveryPrefix}/sensor/${device}/count_${slug(label)}/config`, {
      name: label,
      unique_id: `${device}_count_${slug(label)}`,
      // A text of JSON is one of Jinja, too.
      value_template: `{{ value_json.counts.get(${JSON.stringify(label)}, 0) }}`,
      state_class: 'measurement',
      availability: [up, live],
      availability_mode: 'all',
      icon: 'mdi:counter',
      ...common,
    }),
  )
  return [ofState, ...counts]
}

function serviceDevice({ prefix }: MqttTopics): string {
  return prefix === 'gantry' ? 'gantry' : `gantry_${slug(prefix)}`
}

/** Home Assistant takes letters, digits, "-" and "_" in these names; no two texts have one slug. */
function slug(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9-]/gu, (sign) => `_${sign.codePointAt(0)?.toString(16) ?? ''}_`)
}

function retained(topic: string, payload: unknown): Retained {
  return [topic, JSON.stringify(payload)]
}
