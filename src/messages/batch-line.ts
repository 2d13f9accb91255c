import { z } from 'zod'
import { detectionSchema } from './detections-message.js'

/** Line of the JSONL that `gantry batch` writes: what was found in one picture, or in one frame of a video. */
export const batchLineSchema = z.strictObject({
  item: z
    .string()
    .min(1)
    .describe(
      'The picture: its file, and for a frame of a video `#FRAME/SECONDS` behind it; once in an output.',
    ),
  file: z.string().min(1).describe('Path as it was named or found, or `s3://BUCKET/KEY`.'),
  frame: z
    .number()
    .int()
    .min(1)
    .optional()
    .describe('Of a video: number of the frame among those that were sampled.'),
  timeMs: z
    .number()
    .optional()
    .describe('Of a video that has times: presentation time of the frame, in milliseconds.'),
  widthPx: z.number().int().min(1).describe('Of the picture, turned as its file says.'),
  heightPx: z.number().int().min(1),
  quality: z.enum(['ok', 'suspect']).describe('`suspect` when the decoder reported damage.'),
  model: z.strictObject({ name: z.string(), version: z.string() }),
  detections: z.array(detectionSchema).describe('Best first.'),
})
export type BatchLine = Readonly<z.infer<typeof batchLineSchema>>

/** Line of the file of errors: a picture, a video or a frame without a result. */
export const batchErrorSchema = z.strictObject({
  item: z
    .string()
    .min(1)
    .describe('As in the output; a video that could not be read to its end by its file.'),
  code: z.string().describe('Code of the error, such as `GANTRY_IMAGE_INVALID`.'),
  message: z.string(),
  hint: z.string().describe('What to do about it.'),
})
export type BatchError = Readonly<z.infer<typeof batchErrorSchema>>
