import type { z } from 'zod'
import { cameraIdSchema, cameraPatchSchema } from './camera.js'

/**
 * Body of `POST /api/v1/cameras/preview`: a camera that may be added, or an `id` that is there already and what would be changed of it. What
 * a camera has stays with it, its login too.
 */
export const cameraPreviewRequestSchema = cameraPatchSchema.extend({
  id: cameraIdSchema
    .optional()
    .describe(
      'A camera that is there: then only what would be changed of it need be told. Any other, or none: a new camera.',
    ),
})
export type CameraPreviewRequest = Readonly<z.infer<typeof cameraPreviewRequestSchema>>
