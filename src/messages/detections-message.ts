import { z } from 'zod'

/** Box in source-frame pixels; see {@link BoxPx}. */
const boxPxSchema = z.strictObject({
  x1: z.number(),
  y1: z.number(),
  x2: z.number(),
  y2: z.number(),
})

const attributeSchema = z.strictObject({
  name: z.string().min(1).describe('What is said, such as `helmet_colour`.'),
  value: z.string().min(1).describe('Such as `yellow`.'),
  score: z.number().min(0).max(1).optional().describe('Confidence, 0..1, where the step gives one.'),
})

/** What is said of one thing that was found. */
export const detectionSchema = z.strictObject({
  label: z.string().describe('Class name from the labels file of the model.'),
  score: z.number().min(0).max(1).describe('Confidence, 0..1.'),
  trackId: z.number().int().optional().describe('Stable over the frames of one object, when tracking is on.'),
  boxPx: boxPxSchema.describe('Box in source-frame pixels, origin top-left.'),
  attributes: z.array(attributeSchema).readonly().optional().meta({
    description: 'What later steps of the ensemble say of it, by `gantry.attributes`; since 1.1.',
    // Of the type alone.
    readOnly: undefined,
  }),
})

/**
 * What was found in one frame: value of a Kafka record of type `gantry.detections.v1`, body of a WebSocket `detections`
 * message, and what the cache keeps per camera.
 */
export const detectionsMessageSchema = z.strictObject({
  cameraId: z.string(),
  seq: z
    .number()
    .int()
    .min(1)
    .describe('Frame number of the camera; gaps are frames that were not analysed.'),
  capturedAt: z.iso.datetime().describe('UTC time at which the frame arrived, non-decreasing per camera.'),
  ptsMs: z
    .number()
    .describe(
      'Presentation time of the stream, or time since the first picture where there is none; may jump when the camera restarts.',
    ),
  frame: z.strictObject({
    widthPx: z.number().int().min(1),
    heightPx: z.number().int().min(1),
    quality: z.enum(['ok', 'suspect']).describe('`suspect` when the decoder reported damage.'),
  }),
  model: z.strictObject({ name: z.string(), version: z.string() }),
  detections: z.array(detectionSchema),
  resultOfSeq: z
    .number()
    .int()
    .min(1)
    .optional()
    .describe('Frame whose detections these are, when the scene had not changed since; absent: its own.'),
  timingsMs: z.strictObject({
    queue: z.number().min(0),
    infer: z.number().min(0),
    postprocess: z.number().min(0),
    captureToPublish: z.number().min(0),
  }),
  owner: z
    .strictObject({
      node: z.string(),
      generation: z.number().int().min(0).describe('Grows whenever the camera goes to another node.'),
    })
    .optional()
    .describe(
      'Of a cluster: the node that had the camera. What comes with a lower generation than was seen of a camera is of a former owner; since 1.2.',
    ),
  traceparent: z
    .string()
    .optional()
    .describe(
      'Of a frame that is traced: its span, by W3C Trace Context, for whoever goes on with the trace; since 1.2.',
    ),
})
export type DetectionsMessage = Readonly<z.infer<typeof detectionsMessageSchema>>
