import { z } from 'zod'
import { kafkaHeaders, sinkParts } from './asyncapi-sinks.js'
import { eventTypes } from './cloud-event.js'
import { messageSchemas, type JsonSchema } from './json-schemas.js'
import { streamProtocol } from './stream-protocol.js'

const cloudEventHeadersSchema = kafkaHeaders(z.literal(eventTypes.detections))
const eventHeadersSchema = kafkaHeaders(z.enum([eventTypes.coverage, eventTypes.gap]))

/** A schema as a component: without the keys that make sense at the root of a file only. */
function component(schema: JsonSchema | undefined): JsonSchema {
  const { $schema: _schema, ...rest } = schema ?? {}
  return rest
}

function refs(prefix: string, names: readonly string[]): { $ref: string }[] {
  return names.map((name) => ({ $ref: `${prefix}/messages/${name}` }))
}

/** AsyncAPI 3.0 document of all that leaves: Kafka, webhooks, MQTT and the WebSocket. Published as `schemas/asyncapi.json`, served as `/asyncapi.json`. */
export function asyncApiDocument(): JsonSchema {
  const toClient = ['serverMessage', 'picture']
  const sinks = sinkParts()
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Gantry',
      version: '1.0.0',
      description:
        'What was found in each analysed frame: as records of Kafka, by webhooks and MQTT 5, and live over WebSocket. Readers must ignore ' +
        'fields they do not know: minor versions add some.',
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    servers: {
      kafka: { host: '127.0.0.1:9092', protocol: 'kafka', description: 'sinks.kafka.brokers' },
      http: { host: '127.0.0.1:8000', protocol: 'ws', description: 'server.host and server.httpPort' },
      ...sinks.servers,
    },
    channels: {
      detections: {
        address: eventTypes.detections,
        description:
          'Key: camera id, so the records of one camera are in order. At least once. Name: sinks.kafka.topics.detections.',
        servers: [{ $ref: '#/servers/kafka' }],
        messages: { detections: { $ref: '#/components/messages/detections' } },
      },
      events: {
        address: eventTypes.events,
        description:
          'What is no result: a stretch of the time of a camera that has ended, records that were dropped. Tell them apart by `ce_type` and ' +
          'pass over those that you do not know. Name: sinks.kafka.topics.events.',
        servers: [{ $ref: '#/servers/kafka' }],
        messages: {
          coverage: { $ref: '#/components/messages/coverage' },
          gap: { $ref: '#/components/messages/gap' },
        },
      },
      stream: {
        address: '/api/v1/stream',
        description:
          `Sub-protocol ${streamProtocol}. The server greets with "hello", the client subscribes, a later subscribe replaces the earlier ` +
          'one. A client that does not keep up is told by "gap" how many messages were left out, and closed with 1013 after 30 s. ' +
          'A "ping" is answered by a "pong" with the time of the service, so that a page can tell a quiet stream from a dead one.',
        servers: [{ $ref: '#/servers/http' }],
        messages: Object.fromEntries(
          ['clientMessage', ...toClient].map((name) => [name, { $ref: `#/components/messages/${name}` }]),
        ),
        bindings: { ws: { method: 'GET', bindingVersion: '0.1.0' } },
      },
      ...sinks.channels,
    },
    operations: {
      publishDetections: {
        action: 'send',
        channel: { $ref: '#/channels/detections' },
        messages: refs('#/channels/detections', ['detections']),
      },
      publishEvents: {
        action: 'send',
        channel: { $ref: '#/channels/events' },
        messages: refs('#/channels/events', ['coverage', 'gap']),
      },
      receiveSubscription: {
        action: 'receive',
        channel: { $ref: '#/channels/stream' },
        messages: refs('#/channels/stream', ['clientMessage']),
      },
      streamResults: {
        action: 'send',
        channel: { $ref: '#/channels/stream' },
        messages: refs('#/channels/stream', toClient),
      },
      ...sinks.operations,
    },
    components: {
      messages: { ...messages(), ...sinks.messages },
      schemas: { ...schemas(), ...sinks.schemas },
    },
  }
}

function messages(): JsonSchema {
  const payload = (name: string) => ({ $ref: `#/components/schemas/${name}` })
  const record = (type: string, title: string, headers: string, schema: string) => ({
    name: type,
    title: `${title}, as a CloudEvent 1.0 in binary content mode`,
    headers: payload(headers),
    payload: payload(schema),
    bindings: { kafka: { key: { type: 'string', description: 'Camera id.' }, bindingVersion: '0.5.0' } },
  })
  return {
    detections: record(
      eventTypes.detections,
      'What was found in one frame',
      'CloudEventHeaders',
      'Detections',
    ),
    coverage: record(
      eventTypes.coverage,
      'A stretch of the time of a camera that has ended, watched or blind',
      'EventHeaders',
      'Coverage',
    ),
    gap: record(eventTypes.gap, 'Records that this sink will never get', 'EventHeaders', 'Gap'),
    clientMessage: {
      name: 'clientMessage',
      title: 'Text from a client',
      payload: payload('StreamClientMessage'),
    },
    serverMessage: {
      name: 'serverMessage',
      title: 'Text from the server',
      payload: payload('StreamServerMessage'),
    },
    picture: {
      name: 'picture',
      title: 'The analysed picture, before the detections message of the same frame',
      description:
        'Binary: uint32 big-endian length of a JSON header (schema PictureHeader), the header in UTF-8, then the JPEG. Only for clients ' +
        'that subscribed with frames: true; skipped without a gap when a client is behind.',
      contentType: 'application/octet-stream',
      payload: { type: 'string', format: 'binary' },
    },
  }
}

function schemas(): JsonSchema {
  const published = messageSchemas()
  return {
    CloudEventHeaders: component(z.toJSONSchema(cloudEventHeadersSchema, { io: 'input' })),
    EventHeaders: component(z.toJSONSchema(eventHeadersSchema, { io: 'input' })),
    Coverage: component(published[`${eventTypes.coverage}.json`]),
    Gap: component(published[`${eventTypes.gap}.json`]),
    Detections: component(published[`${eventTypes.detections}.json`]),
    StreamClientMessage: component(published['stream.client-message.v1.json']),
    StreamServerMessage: component(published['stream.server-message.v1.json']),
    PictureHeader: component(published['stream.picture-header.v1.json']),
  }
}
