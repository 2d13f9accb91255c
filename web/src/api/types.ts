import type { z } from 'zod'
import type { cameraViewSchema } from '../../../src/api/camera-schemas.js'
import type { statusSchema } from '../../../src/api/readiness-schemas.js'
import type { coverageSchema } from '../../../src/api/coverage-schema.js'
import type { modelListSchema } from '../../../src/api/models-schema.js'

export type { PictureHeader, Result as DetectionsMessage } from '../../../clients/typescript/src/index.js'
export type { CameraState, DecodeMode, DecodePlace } from '../../../src/vision/camera-state.js'
export type { CameraPreview } from '../../../src/api/preview-schema.js'
export type { Problem } from '../../../src/api/problem.js'

/** What the server answers, typed by the very schemas it publishes. */
export type Camera = Readonly<z.infer<typeof cameraViewSchema>>
export type Status = Readonly<z.infer<typeof statusSchema>>
export type Coverage = Readonly<z.infer<typeof coverageSchema>>
export type ModelList = Readonly<z.infer<typeof modelListSchema>>
export type Model = ModelList['items'][number]
export type ModelVersion = Model['versions'][number]
export type ModelWork = NonNullable<ModelVersion['work']>
export type KafkaPlace = NonNullable<Status['kafka']>
