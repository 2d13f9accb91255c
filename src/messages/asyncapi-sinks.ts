import { z } from 'zod'
import { cameraStates } from '../vision/camera-state.js'
import { eventTypes } from './cloud-event.js'
import type { JsonSchema } from './json-schemas.js'

const attributes = {
  specversion: z.literal('1.0'),
  id: z.string().describe('The same for every repetition of a record; deduplicate by it.'),
  type: z.enum([eventTypes.detections, eventTypes.coverage, eventTypes.gap]),
  source: z.string().describe('/cameras/<id>'),
  time: z.iso.datetime().describe('Time of capture or of the event, UTC.'),
  schemaversion: z.string().describe('Version of the schema of the type; a minor one adds fields.'),
}

/** Attributes of CloudEvents 1.0 as headers of a protocol. @param prefix - before each name */
function attributeHeaders<T extends z.ZodType<string>>(prefix: string, type: T) {
  const prefixed = Object.entries({ ...attributes, type }).map(([name, schema]) => [
    `${prefix}${name}`,
    schema,
  ])
  return Object.fromEntries(prefixed) as Record<string, z.ZodType>
}

const json = z.literal('application/json')
const anyType = attributes.type

/** Headers of Kafka. */
export const kafkaHeaders = (type: z.ZodType<string>) =>
  z.object({ ...attributeHeaders('ce_', type), 'content-type': json })

const deadLetterHeaders = z.object({
  ...attributeHeaders('ce_', anyType),
  'content-type': z
    .enum(['application/json', 'application/octet-stream'])
    .describe('The second where the value was cut off.'),
  gantry_error: z.string().describe('Why it was refused, as Kafka calls it, such as `MESSAGE_TOO_LARGE`.'),
  gantry_error_detail: z.string().describe('The same in the words of whoever refused.'),
  gantry_original_topic: z.string().describe('Topic that it was for.'),
  gantry_value_bytes: z.string().describe('Length of the whole value, in digits.'),
  gantry_truncated: z.literal('true').optional().describe('The value is the beginning of the whole.'),
})

const webhookSignature = {
  'webhook-id': z.string().describe('The same for every attempt to post the same records.'),
  'webhook-timestamp': z.string().describe('Time of the attempt, seconds since 1970.'),
  'webhook-signature': z
    .string()
    .optional()
    .describe('With `secret`: one or two signatures of Standard Webhooks, `v1,<base64>`.'),
}
const webhookHeadersSchema = z.object({
  ...attributeHeaders('ce-', anyType),
  'content-type': json,
  ...webhookSignature,
})
const webhookBatchHeaders = z.object({
  'content-type': z.literal('application/cloudevents-batch+json; charset=utf-8'),
  ...webhookSignature,
})

const cameraStateMessage = z.object({
  state: z.enum(cameraStates),
  reason: z.string().describe('Why, for people; empty where all is well.'),
  counts: z
    .record(z.string(), z.number().int().min(0))
    .describe('How many of each label the last picture has.'),
  total: z.number().int().min(0),
})

/** What only sinks have of servers, channels, operations and components. */
export function sinkParts() {
  const schema = (name: string) => ({ $ref: `#/components/schemas/${name}` })
  const message = (name: string) => ({ $ref: `#/components/messages/${name}` })
  const messages = (...names: string[]) => Object.fromEntries(names.map((name) => [name, message(name)]))
  const anyRecord = { oneOf: [schema('Detections'), schema('Coverage'), schema('Gap')] }
  const send = (channel: string, names: readonly string[], bindings?: JsonSchema) => ({
    action: 'send',
    channel: { $ref: `#/channels/${channel}` },
    messages: names.map((name) => ({ $ref: `#/channels/${channel}/messages/${name}` })),
    ...(bindings !== undefined && { bindings }),
  })
  const mqtt = (retain: boolean) => ({ mqtt: { qos: 1, retain, bindingVersion: '0.2.0' } })
  const mqttChannel = (address: string, description: string, ...names: string[]) => ({
    address,
    description: `${description} The beginning is sinks.mqtt.topicPrefix.`,
    servers: [{ $ref: '#/servers/mqtt' }],
    ...(address.includes('{') && { parameters: { cameraId: { description: 'Id of the camera.' } } }),
    messages: messages(...names),
  })
  const userProperties = { mqtt: { payloadFormatIndicator: 1, bindingVersion: '0.2.0' } }
  return {
    servers: {
      webhook: { host: 'hooks.plant.example', protocol: 'https', description: 'sinks.webhook.url' },
      mqtt: {
        host: 'broker.plant.example:8883',
        protocol: 'secure-mqtt',
        protocolVersion: '5.0',
        description: 'sinks.mqtt.url',
        bindings: {
          mqtt: {
            cleanSession: true,
            lastWill: { topic: 'gantry/status', qos: 1, message: 'offline', retain: true },
            keepAlive: 30,
            sessionExpiryInterval: 0,
            bindingVersion: '0.2.0',
          },
        },
      },
    },
    channels: {
      deadLetters: {
        address: 'gantry.dead-letter.v1',
        description:
          'Records that the brokers refuse for good, with the reason. Key: camera id. Created when the first one comes. Name: sinks.kafka.topics.deadLetter.',
        servers: [{ $ref: '#/servers/kafka' }],
        messages: messages('deadLetter'),
      },
      webhook: {
        address: '/',
        description:
          'The path is that of sinks.webhook.url. One request at a time, in the order of each camera, at least once. 2xx: taken. 4xx but 408, 425 and ' +
          '429: refused for good. Anything else, and no answer: sent again.',
        servers: [{ $ref: '#/servers/webhook' }],
        messages: messages('webhookRecord', 'webhookBatch'),
      },
      mqttDetections: mqttChannel(
        'gantry/cameras/{cameraId}/detections',
        'Results of a camera, at least once.',
        'mqttDetections',
      ),
      mqttEvents: mqttChannel(
        'gantry/cameras/{cameraId}/events',
        'What is no result; tell them apart by `type`.',
        'mqttEvent',
      ),
      mqttState: mqttChannel(
        'gantry/cameras/{cameraId}/state',
        'Where a camera stands, retained: when it changes, once a second at most.',
        'mqttState',
      ),
      mqttStatus: mqttChannel('gantry/status', 'Whether the service is there, retained.', 'mqttStatus'),
    },
    operations: {
      publishDeadLetters: send('deadLetters', ['deadLetter']),
      postRecord: send('webhook', ['webhookRecord'], { http: { method: 'POST', bindingVersion: '0.3.0' } }),
      postBatch: send('webhook', ['webhookBatch'], { http: { method: 'POST', bindingVersion: '0.3.0' } }),
      publishMqttDetections: send('mqttDetections', ['mqttDetections'], mqtt(false)),
      publishMqttEvents: send('mqttEvents', ['mqttEvent'], mqtt(false)),
      publishMqttState: send('mqttState', ['mqttState'], mqtt(true)),
      publishMqttStatus: send('mqttStatus', ['mqttStatus'], mqtt(true)),
    },
    messages: {
      deadLetter: {
        name: 'deadLetter',
        title: 'A record that the brokers refuse for good',
        description:
          'The value is that of the record, or its first 16 KiB where the whole is too large here, too.',
        headers: schema('DeadLetterHeaders'),
        payload: anyRecord,
        bindings: { kafka: { key: { type: 'string', description: 'Camera id.' }, bindingVersion: '0.5.0' } },
      },
      webhookRecord: {
        name: 'webhookRecord',
        title: 'A record, as a CloudEvent 1.0 in binary content mode',
        description: 'With sinks.webhook.maxBatchRecords: 1.',
        headers: schema('WebhookHeaders'),
        payload: anyRecord,
      },
      webhookBatch: {
        name: 'webhookBatch',
        title: 'Several records, as CloudEvents 1.0 in JSON',
        description: 'With sinks.webhook.maxBatchRecords over 1; a list of one record, too.',
        contentType: 'application/cloudevents-batch+json',
        headers: schema('WebhookBatchHeaders'),
        payload: { type: 'array', minItems: 1, items: schema('CloudEvent') },
      },
      mqttDetections: {
        name: 'mqttDetections',
        title: 'What was found in one frame; attributes of CloudEvents 1.0 are user properties',
        headers: schema('UserProperties'),
        payload: schema('Detections'),
        bindings: userProperties,
      },
      mqttEvent: {
        name: 'mqttEvent',
        title: 'What is no result; attributes of CloudEvents 1.0 are user properties',
        headers: schema('UserProperties'),
        payload: { oneOf: [schema('Coverage'), schema('Gap')] },
        bindings: userProperties,
      },
      mqttState: { name: 'mqttState', title: 'Where a camera stands', payload: schema('CameraState') },
      mqttStatus: {
        name: 'mqttStatus',
        title: 'Whether the service is there',
        contentType: 'text/plain',
        payload: { type: 'string', enum: ['online', 'offline'] },
      },
    },
    schemas: {
      DeadLetterHeaders: shown(deadLetterHeaders),
      WebhookHeaders: shown(webhookHeadersSchema),
      WebhookBatchHeaders: shown(webhookBatchHeaders),
      UserProperties: shown(z.object(attributes)),
      CloudEvent: {
        allOf: [
          shown(z.object({ ...attributes, datacontenttype: json })),
          { type: 'object', required: ['data'], properties: { data: anyRecord } },
        ],
      },
      CameraState: shown(cameraStateMessage),
    },
  }
}

function shown(schema: z.ZodType): JsonSchema {
  const { $schema: _schema, ...rest } = z.toJSONSchema(schema, { io: 'input' })
  return rest
}
