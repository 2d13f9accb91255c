import { expect, it } from 'vitest'
import { cameraDiscovery, serviceDiscovery } from '../../../src/delivery/mqtt/home-assistant.js'
import { MqttTopics } from '../../../src/delivery/mqtt/mqtt-topics.js'
import { homeAssistantFaults } from '../../support/home-assistant.js'

const ids = ['dock-1', 'dock.1', 'Halle 7/Tor', 'ворота', '{{ 7 }}']
const labels = ['helmet', 'bare "head"', "driver's", 'Stapler (groß)', '{{ x }}', 'a\\b', '50 %']

it.each([
  ['gantry', 'homeassistant'],
  ['plant/7', 'homeassistant'],
  ['werk-süd', 'ha/discovery'],
])(
  'R152: Home Assistant takes every field and topic, with topics under %s and discovery under %s',
  (prefix, discoveryPrefix) => {
    const settings = { discoveryPrefix, topics: new MqttTopics(prefix), version: '1.2.3' }
    const told = [serviceDiscovery(settings), ...ids.flatMap((id) => cameraDiscovery(id, labels, settings))]
    expect(told).toHaveLength(1 + ids.length * (1 + labels.length))
    expect(told.flatMap(([topic, payload]) => homeAssistantFaults(discoveryPrefix, topic, payload))).toEqual(
      [],
    )
    // What has one id is one entity to it, and of two topics it would see the first.
    const unique = told.map(([, payload]) => (JSON.parse(payload) as { unique_id: string }).unique_id)
    expect(new Set(unique).size).toBe(told.length)
    expect(new Set(told.map(([topic]) => topic)).size).toBe(told.length)
  },
)

it('the check itself finds what Home Assistant would not take', () => {
  const topic = 'homeassistant/sensor/dock/count/config'
  const right = {
    unique_id: 'a',
    state_topic: 'b',
    origin: { name: 'Gantry' },
    device: { identifiers: ['d'] },
  }
  const faults = (more: object, name = topic) =>
    homeAssistantFaults('homeassistant', name, JSON.stringify({ ...right, ...more }))
  expect(faults({})).toEqual([])
  for (const wrong of [
    { device: { name: 'no identifier' } },
    { device: { identifiers: ['d'], colour: 'red' } },
    { origin: {} },
    { options: ['live'], device_class: 'enum', state_class: 'measurement' },
    { options: ['live'] },
    { state_topic: 'a/#/b' },
    { icon: 'counter' },
    { value_template: '{{ value_json.state }' },
    { availability: [{ payload_available: 'online' }] },
  ])
    expect(faults(wrong), JSON.stringify(wrong)).not.toEqual([])
  expect(faults({}, 'homeassistant/sensor/dock.1/count/config')).not.toEqual([])
})
