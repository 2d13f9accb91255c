import { z } from 'zod'
import { cameraSchema } from '../config/camera.js'

/** Version of {@link cameraMessageSchema}; a higher one is of a service newer than this. */
export const cameraMessageVersion = 1

/**
 * Value of a record in the topic of cameras, whose key is the camera's id. A record without value (a tombstone) removes the camera. Settings that
 * are left out have their defaults, as in a pipeline file; nothing is filled in from the environment.
 */
export const cameraMessageSchema = z.strictObject({
  version: z.literal(cameraMessageVersion).describe('Of this schema.'),
  camera: cameraSchema
    .partial({ id: true })
    .describe(
      'Settings as in `cameras` of a pipeline file; where `id` is given it must be the key of the record.',
    ),
})
export type CameraMessage = Readonly<z.input<typeof cameraMessageSchema>>

/** Value of a record in the topic of errors: a record of the topic of cameras that is not followed. */
export const cameraErrorMessageSchema = z.strictObject({
  cameraId: z.string().describe('Key of the record.'),
  topic: z.string(),
  partition: z.number().int().min(0),
  offset: z.string().describe('Of the record, in decimal digits.'),
  reason: z.string().describe('What is wrong with it, for people.'),
  node: z.string().describe('Who says so.'),
  at: z.iso.datetime().describe('UTC.'),
})
export type CameraErrorMessage = Readonly<z.infer<typeof cameraErrorMessageSchema>>
