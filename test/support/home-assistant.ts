import { z } from 'zod'

/**
 * What Home Assistant takes in a discovery message of a sensor and a binary sensor, by the fields and rules that its documentation and its
 * source name. It leaves out unknown fields of an entity without a word; here they are errors, as they would do nothing.
 *
 * @see https://www.home-assistant.io/integrations/sensor.mqtt/ https://www.home-assistant.io/integrations/binary_sensor.mqtt/
 * @see https://github.com/home-assistant/core/blob/2025.1.0/homeassistant/components/mqtt/schemas.py
 */
const text = z.string().min(1)
/** To subscribe to: wildcards are whole levels, and `#` is the last one. */
const topic = text.max(65_535).refine((name) => {
  const levels = name.split('/')
  return levels.every(
    (level, index) =>
      !/[+#\0]/.test(level) || level === '+' || (level === '#' && index === levels.length - 1),
  )
})
/** Of Jinja: all that is opened is closed. */
const template = text.refine((words) => words.split('{{').length === words.split('}}').length)
const icon = z.string().regex(/^[a-z-]+:[a-z0-9-]+$/)
const url = z.string().regex(/^(https?|homeassistant):\/\/./)

const device = z
  .strictObject({
    identifiers: z.array(text).optional(),
    connections: z.array(z.tuple([text, text])).optional(),
    manufacturer: text.optional(),
    model: text.optional(),
    model_id: text.optional(),
    name: text.optional(),
    hw_version: text.optional(),
    serial_number: text.optional(),
    sw_version: text.optional(),
    via_device: text.optional(),
    suggested_area: text.optional(),
    configuration_url: url.optional(),
  })
  .refine(({ identifiers = [], connections = [] }) => identifiers.length + connections.length > 0)

const common = {
  availability: z
    .array(
      z.strictObject({
        topic,
        payload_available: text.optional(),
        payload_not_available: text.optional(),
        value_template: template.optional(),
      }),
    )
    .optional(),
  availability_mode: z.enum(['all', 'any', 'latest']).optional(),
  device: device.optional(),
  origin: z.strictObject({ name: text, sw_version: text.optional(), support_url: url.optional() }),
  enabled_by_default: z.boolean().optional(),
  entity_category: z.enum(['config', 'diagnostic']).optional(),
  icon: icon.optional(),
  json_attributes_topic: topic.optional(),
  json_attributes_template: template.optional(),
  unique_id: text,
  name: z.union([text, z.null()]).optional(),
  qos: z.union([z.literal(0), z.literal(1), z.literal(2)]).optional(),
  encoding: z.string().optional(),
  state_topic: topic,
  value_template: template.optional(),
  expire_after: z.number().int().min(0).optional(),
  force_update: z.boolean().optional(),
}

/** Of the classes those that are of use to a camera. */
const sensor = z
  .strictObject({
    ...common,
    device_class: z.enum(['enum', 'timestamp', 'duration']).optional(),
    state_class: z.enum(['measurement', 'total', 'total_increasing']).optional(),
    options: z.array(text).min(1).optional(),
    unit_of_measurement: text.optional(),
    suggested_display_precision: z.number().int().min(0).optional(),
    last_reset_value_template: template.optional(),
  })
  .refine(({ options, device_class }) => options === undefined || device_class === 'enum')
  .refine(
    ({ options, state_class, unit_of_measurement }) =>
      options === undefined || (state_class === undefined && unit_of_measurement === undefined),
  )

const binarySensor = z.strictObject({
  ...common,
  device_class: z.enum(['connectivity', 'motion', 'occupancy', 'problem', 'running', 'safety']).optional(),
  payload_on: text.optional(),
  payload_off: text.optional(),
  off_delay: z.number().int().min(0).optional(),
})

/** @see https://www.home-assistant.io/integrations/mqtt/#discovery-topic */
const discoveryTopic = /^(?<component>\w+)\/(?:(?<node>[a-zA-Z0-9_-]+)\/)?(?<object>[a-zA-Z0-9_-]+)\/config$/

/** What Home Assistant would not take of a discovery message; empty where it takes all. @param prefix - of discovery */
export function homeAssistantFaults(prefix: string, name: string, payload: string): readonly string[] {
  if (!name.startsWith(`${prefix}/`)) return [`${name} is not under ${prefix}`]
  const { component } = discoveryTopic.exec(name.slice(prefix.length + 1))?.groups ?? {}
  const schema = component === 'sensor' ? sensor : component === 'binary_sensor' ? binarySensor : undefined
  if (schema === undefined) return [`${name} is no topic of a sensor`]
  const { error } = schema.safeParse(JSON.parse(payload))
  return (error?.issues ?? []).map(({ path, message }) => `${name}: ${path.join('.')}: ${message}`)
}
