import { z } from 'zod'

const pixels = z.number().int().min(1)
const size = z.strictObject({ widthPx: pixels, heightPx: pixels })

/** What `POST /api/v1/cameras/preview` answers. */
export const cameraPreviewSchema = z
  .strictObject({
    state: z
      .enum(['ok', 'failed'])
      .describe('`ok`: a picture came, or pictures are to be pushed. `failed`: none did.'),
    detail: z
      .string()
      .describe('What was found, or why no picture came; the words of `gantry check --probe`.'),
    hint: z.string().describe('What to do about it; empty where all is well.'),
    source: size.nullable().describe('Of the whole picture, in square pixels; null without one.'),
    codec: z.string().nullable().describe('ffmpeg’s name of it; null where nothing was told.'),
    fps: z.number().nullable().describe('Pictures a second, where the stream says so.'),
    firstPictureMs: z
      .number()
      .int()
      .min(0)
      .nullable()
      .describe('From opening the camera to its first picture.'),
    warnings: z.array(z.string()).describe('What the decoder warned of until then.'),
    picture: size
      .extend({ mime: z.literal('image/jpeg'), base64: z.string() })
      .nullable()
      .describe(
        'The whole picture without its region, scaled down to 1280 pixels at most. Of the stream that is analysed.',
      ),
  })
  .describe('What a camera would give. Nothing of it is stored.')
export type CameraPreview = Readonly<z.infer<typeof cameraPreviewSchema>>
