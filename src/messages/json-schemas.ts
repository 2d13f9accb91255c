import { z } from 'zod'
import { batchErrorSchema, batchLineSchema } from './batch-line.js'
import { cameraErrorMessageSchema, cameraMessageSchema } from './camera-message.js'
import { coverageMessageSchema } from './coverage-message.js'
import { eventTypes } from './cloud-event.js'
import { gapMessageSchema } from './gap-message.js'
import { detectionsMessageSchema } from './detections-message.js'
import { clientMessageSchema, pictureHeaderSchema, serverMessageSchema } from './stream-protocol.js'

export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * What this service sends. Open: a minor version adds fields, and readers must ignore those they do not know, so a record of a later
 * version is valid under the schema of an earlier one.
 */
function sent(schema: z.ZodType, title: string): JsonSchema {
  const open = ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
    if (jsonSchema['additionalProperties'] === false) delete jsonSchema['additionalProperties']
  }
  return { title, ...z.toJSONSchema(schema, { io: 'output', override: open }) }
}

/** What this service reads. Closed: an unknown key is an error. */
function read(schema: z.ZodType, title: string): JsonSchema {
  return { title, ...z.toJSONSchema(schema, { io: 'input' }) }
}

/** Published JSON Schemas of the messages by file name under `schemas/`. */
export function messageSchemas(): Readonly<Record<string, JsonSchema>> {
  return {
    [`${eventTypes.detections}.json`]: sent(
      detectionsMessageSchema,
      `Value of a Kafka record of type ${eventTypes.detections}`,
    ),
    [`${eventTypes.coverage}.json`]: sent(
      coverageMessageSchema,
      `Value of a record of type ${eventTypes.coverage}`,
    ),
    'gantry.cameras.v1.json': read(
      cameraMessageSchema,
      'Value of a record in the topic of cameras of a cluster',
    ),
    'gantry.cameras.errors.v1.json': sent(
      cameraErrorMessageSchema,
      'Value of a record in the topic of errors of a cluster',
    ),
    [`${eventTypes.gap}.json`]: sent(gapMessageSchema, `Value of a record of type ${eventTypes.gap}`),
    'gantry.batch.v1.json': sent(batchLineSchema, 'Line of the JSONL that gantry batch writes'),
    'gantry.batch-error.v1.json': sent(batchErrorSchema, 'Line of the errors that gantry batch writes'),
    'stream.server-message.v1.json': sent(serverMessageSchema, 'Text message a server of gantry.v1 sends'),
    'stream.client-message.v1.json': read(clientMessageSchema, 'Text message a client of gantry.v1 sends'),
    'stream.picture-header.v1.json': sent(
      pictureHeaderSchema,
      'JSON header of a binary message of gantry.v1: uint32 big-endian length, this header, a JPEG',
    ),
  }
}
