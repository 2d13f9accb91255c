import type { z } from 'zod'
import type { cameraViewSchema, statusSchema } from '../../../src/server/api-schemas.js'

export type { DetectionsMessage } from '../../../src/events/detections-message.js'
export type { PictureHeader, ServerMessage } from '../../../src/events/stream-protocol.js'
export type { CameraState } from '../../../src/frames/camera-state.js'
export type { Problem } from '../../../src/server/problem.js'

/** What the server answers, typed by the very schemas it publishes. */
export type Camera = Readonly<z.infer<typeof cameraViewSchema>>
export type Status = Readonly<z.infer<typeof statusSchema>>
