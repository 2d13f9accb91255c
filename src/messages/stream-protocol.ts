import { z } from 'zod'
import { detectionsMessageSchema } from './detections-message.js'

/** WebSocket sub-protocol of `/api/v1/stream`. */
export const streamProtocol = 'gantry.v1'

/** Position in the stream of one run of the service: `<epoch>-<number>`. */
export const cursorSchema = z
  .string()
  .regex(/^[0-9a-z]+-\d+$/, 'must be a cursor taken from an earlier message')

export const subscribeSchema = z.strictObject({
  type: z.literal('subscribe'),
  cameras: z
    .array(z.string().min(1).max(128))
    .max(1024)
    .default(['*'])
    .describe('Camera ids; `*` is every camera.'),
  labels: z
    .array(z.string().min(1).max(128))
    .max(256)
    .default([])
    .describe('Labels to keep; empty keeps all.'),
  minScore: z.number().min(0).max(1).default(0).describe('Detections under this score are left out.'),
  detections: z.boolean().default(true),
  events: z.boolean().default(true),
  frames: z.boolean().default(false).describe('Also send the analysed pictures, as binary messages.'),
  frameCameras: z
    .array(z.string().min(1).max(128))
    .max(1024)
    .optional()
    .describe('With `frames`: of these cameras alone; default: of all in `cameras`.'),
  resumeAfter: cursorSchema
    .optional()
    .describe('Replay what was sent after this cursor, as far as it is kept.'),
})

/** Asks for a `pong`. For clients that cannot see the pings of WebSocket itself, as pages in browsers. */
export const pingSchema = z.strictObject({ type: z.literal('ping') })

/** Everything a client may send. A later `subscribe` replaces the earlier one. */
export const clientMessageSchema = z.discriminatedUnion('type', [subscribeSchema, pingSchema])
export type ClientMessage = Readonly<z.infer<typeof clientMessageSchema>>
export type Subscription = Readonly<Omit<z.infer<typeof subscribeSchema>, 'type'>>

export const helloSchema = z.strictObject({
  type: z.literal('hello'),
  protocol: z.literal(streamProtocol),
  service: z.string(),
  version: z.string(),
  cursor: cursorSchema.describe('Cursor of the newest message before this connection.'),
})

export const subscribedSchema = subscribeSchema.omit({ type: true }).extend({ type: z.literal('subscribed') })

export const detectionsEnvelopeSchema = detectionsMessageSchema.extend({
  type: z.literal('detections'),
  cursor: cursorSchema,
})

export const gapReasons = ['slow_client', 'resume_expired'] as const
/** Told before the next message when something was left out for this client. */
export const gapSchema = z.strictObject({
  type: z.literal('gap'),
  dropped: z
    .number()
    .int()
    .min(0)
    .describe('Messages left out since the last `gap`; 0 when it cannot be known.'),
  reason: z.enum(gapReasons),
})

export const streamErrorSchema = z.strictObject({
  type: z.literal('error'),
  code: z.string().describe('A code of docs/errors.md; later versions may know more.'),
  message: z.string(),
  hint: z.string(),
})

/** Answer to a `ping`, and to nothing else: who never asks never gets one. */
export const pongSchema = z.strictObject({
  type: z.literal('pong'),
  at: z.iso.datetime().describe('Wall time of the service, UTC: the clock that `capturedAt` is of.'),
})

/** Every text message a server sends. */
export const serverMessageSchema = z.discriminatedUnion('type', [
  helloSchema,
  subscribedSchema,
  detectionsEnvelopeSchema,
  gapSchema,
  streamErrorSchema,
  pongSchema,
])
export type ServerMessage = Readonly<z.infer<typeof serverMessageSchema>>

/**
 * Header of a binary message: uint32 big-endian length of this JSON, the JSON in UTF-8, then the JPEG.
 *
 * A picture has the `cameraId` and `seq` of the `detections` message that follows it, so that boxes are drawn on the very frame
 * they were found in.
 */
export const pictureHeaderSchema = z.strictObject({
  type: z.literal('picture'),
  cameraId: z.string(),
  seq: z.number().int(),
  capturedAt: z.iso.datetime(),
  widthPx: z
    .number()
    .int()
    .describe(
      'Size of the JPEG. Boxes are in source pixels: scale by `widthPx / sourceWidthPx` after shifting.',
    ),
  heightPx: z.number().int(),
  sourceWidthPx: z.number().int().describe('Size in source pixels of the part that the picture shows.'),
  sourceHeightPx: z.number().int(),
  sourceXPx: z.number().int().describe('Left edge of the picture in the source, with a region of interest.'),
  sourceYPx: z.number().int(),
  mime: z.literal('image/jpeg'),
})
export type PictureHeader = Readonly<z.infer<typeof pictureHeaderSchema>>
